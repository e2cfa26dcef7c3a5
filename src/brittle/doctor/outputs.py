"""Checks of the outputs: class scores that depend on the input, of the declared kind.

Outputs whose sign decides may lie on one side of the threshold for good: a sigmoid declared as a logit is positive at
every input, and every score would say so for certain. A network may also predict the same everywhere and be right.
What tells them apart is what other weights would give: a logit has the other sign then, and a sigmoid never. Where no
weights are seen, inputs far away stand for them: there a sigmoid comes as near to the threshold as one likes.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from brittle.decisions import Custom, MultiLabel
from brittle.doctor.subject import LOOKED_AT, Finding, Subject
from brittle.errors import BrittleError, ModelError, listed
from brittle.model.arrays import SMALLEST_PROBABILITY
from brittle.model.texts import is_text_function

AGREE = 5e-4  # difference that margins of the same outputs may have, absolute and as a share of their size

ENOUGH_ROWS = 16  # rows of the same sum that are taken for probabilities of another total, such as 100
APART = 0.01  # share of it by which they must differ: a large number added to all logits makes equal sums, too
SURE = 0.98  # of some row a trained model is, which still shows after a softmax over probabilities
ROUNDED = 1e-3  # by which such a probability may miss 0 and 1


def check_outputs(subject: Subject) -> Iterator[Finding | str]:
    """Check that the logits are finite in at least one row, and differ between inputs; other rows get no number."""
    logits, classifier = subject.logits, subject.classifier
    finite = logits.isfinite().all(dim=1)
    if not bool(finite.any()):
        masked = (logits == -torch.inf).all(dim=0)
        fault = "NaN logits" if bool(logits.isnan().any()) else "infinite logits"
        advice = "check the weights and the range of the inputs"
        if bool(masked.any()) and bool(logits[:, ~masked].isfinite().all(dim=1).any()):
            fault = f"-inf for class {listed(masked.nonzero().flatten().tolist())}"
            advice = "margins to a mask have no number: leave the class out, or mask it with a finite number (-1e4)"
        raise ModelError("nonfinite_logits", f"the model returned {fault} in all of the {len(logits)} rows; {advice}")
    alike = torch.equal(subject.random_logits[finite], logits[finite])
    if alike and classifier.forward_only is not None:  # a tree has wide level parts, in which all first rows may lie
        shares = (0.0, 1.0) if classifier.bounds.finite else (-3.0, 4.0)  # of the range of the points
        far = subject.random_inputs(LOOKED_AT, shares).split(len(logits))
        parts = [subject.logits_of(part) for part in far if len(part) == len(logits)]
        alike = all(torch.equal(part[finite], logits[finite]) for part in parts)
    alike &= not subject.decision.may_be_empty or bool((logits != 0).any())
    if alike and torch.equal(subject.noisy_logits[finite], logits[finite]) and subject.is_unrestricted:
        examples = ", ".join(f"{value:.4g}" for value in logits[finite][0, :5].tolist())
        fault = f"{len(logits)} rows got the same logits ({examples}…) as their noisy copies and as random inputs"
        if not is_text_function(classifier.model):  # which may well call all that it sees at first safe
            advice = "the model does not look at its input, or not at the one that varies (perturb=)"
            raise ModelError("constant_output", f"{fault} beside the same other tensors; {advice}")
        yield Finding("constant_output", f"{fault}; look whether the function reads its texts")
    yield f"finite in {int(finite.sum())} of {len(logits)} rows; they differ between these and other inputs"


def check_decision(subject: Subject) -> Iterator[Finding | str]:
    """Check that a function of the user that decides gives the same margins again, in any order and for a row alone."""
    decision = subject.decision
    if not isinstance(decision, Custom):
        yield "no function of yours decides"
        return
    with torch.no_grad():
        outputs = subject.classifier.read(subject.inputs, subject.extra_inputs)
        pairs = outputs.roll(1, 0), outputs  # of the point before, as if each were one of its copies
        margins = decision.margins(*pairs)
        rows = zip(*(outputs_of_side.split(1) for outputs_of_side in pairs), strict=True)
        repeats = {
            "when it is called again": decision.margins(*pairs),
            "in another order": decision.margins(*(outputs_of_side.flip(0) for outputs_of_side in pairs)).flip(0),
            "alone": torch.cat([decision.margins(*row) for row in rows]),
        }
    for how, repeat in repeats.items():
        if repeat.shape != margins.shape or not torch.allclose(margins, repeat, AGREE, AGREE, equal_nan=True):
            fault = f"the decision {decision.label} gave other margins of the same outputs {how}"
            advice = "they must depend on the two outputs of a row alone"
            raise ModelError("decision", f"{fault}, {list(margins.shape)} and {list(repeat.shape)}; {advice}")
    yield f"{decision.label} gives the same margins of {len(outputs)} rows again, in another order and alone"


def check_head(subject: Subject) -> Iterator[Finding | str]:
    """Check that the logits are those of a linear layer, where a score reads its features."""
    if not any(need.uses_features for need in subject.needs):
        yield "no chosen score needs features"
        return
    with torch.no_grad():
        _, features = subject.classifier.observe(subject.inputs, subject.extra_inputs)
    yield f"{subject.classifier.head_name or 'the last linear layer'} sees {features.shape[1]} features"


def check_kind(subject: Subject) -> Iterator[Finding | str]:
    """Check that the outputs are what was declared, and not probabilities, sigmoids or the outputs of another task."""
    logits = subject.logits[subject.logits.isfinite().all(dim=1)]
    declared = subject.classifier.outputs
    # By how much a sum of probabilities may miss 1: each is rounded by its own size, and adding them up rounds again.
    exact = 8.0 * float(torch.finfo(subject.classifier.output_dtype).eps) * math.log2(2 * subject.classes)
    yield from check_sides(subject)
    if subject.decision.of_odds and not subject.decision.has_margins and declared == "logits" and in_unit(logits):
        advice = "use --outputs probs (outputs='probs'), or return class scores of any sign"
        raise ModelError("outputs", f"the scores of pixels are between 0 and 1, as probabilities are; {advice}")
    if isinstance(subject.decision, MultiLabel) and declared == "probs" and subject.classes > 2:
        if bool(((logits.double().sigmoid().sum(dim=1) - 1).abs() <= exact).all()):
            advice = "of these classes one holds; leave out --decision multilabel (decision='multilabel')"
            rows = f"each of {len(logits)} rows of {subject.classes} probabilities"
            raise ModelError("outputs", f"{rows} sums to 1: {advice}")
    elif subject.decision.has_classes and declared == "logits":
        _refuse_probabilities(subject, logits, exact)
    elif subject.decision.of_classes and declared == "probs":
        # An estimator's 0 is raised to the smallest probability.
        yield from _about_probabilities(logits.double(), max(exact, subject.classes * SMALLEST_PROBABILITY))
    yield from _compare_probabilities(subject)
    spread = f"from {float(logits.min()):.4g} to {float(logits.max()):.4g}"
    yield f"{subject.decision.label}, from {logits.shape[1]} {declared} {spread}"


def _compare_probabilities(subject: Subject) -> Iterator[Finding]:
    """Note where an estimator gives another class than its own the largest probability, or rows do not sum to 1."""
    classifier = subject.classifier
    if not (classifier.own_probability and any(score.serves == "probability" for score in subject.scores)):
        return
    with torch.no_grad():
        logs = classifier.log_probabilities(subject.inputs, subject.extra_inputs)
    sums, decided = logs.exp().sum(dim=1), logs.gather(1, subject.logits.argmax(dim=1, keepdim=True))[:, 0]
    if differing := int((decided < logs.amax(dim=1)).sum()):
        rival = f"another class than the largest decision_function in {differing} of {len(logs)} rows"
        advice = "the second decides, and scores of a probability read the first"
        yield Finding("outputs", f"the largest predict_proba is that of {rival}; {advice}")
    if bool(((sums - 1).abs() > ROUNDED).any()):
        span = f"{float(sums.min()):.3g} to {float(sums.max()):.3g}"
        yield Finding("outputs", f"rows of predict_proba sum to {span}; scores of a probability read shares of that")


def _refuse_probabilities(subject: Subject, logits: Tensor, exact: float) -> None:
    """Refuse probabilities and sigmoids that were declared as logits; log-probabilities serve as such."""
    sums = logits.double().sum(dim=1)
    total = _total_of(logits, sums, exact)
    if total == 1 and bool(((logits == 0) | (logits == 1)).all()):
        advice = "use --outputs probs (outputs='probs'), which takes each class as sure"
        raise ModelError("outputs", f"every row of the output is a 1 among zeros: classes, without scores; {advice}")
    if total is not None:
        advice = "" if total == 1 else f"divide them by {total:.4g} and "
        advice += "use --outputs probs (outputs='probs'), which takes their logarithm"
        fault = f"every row of the output is at least 0 and sums to {total:.4g}, as probabilities do"
        raise ModelError("outputs", f"{fault}; {advice}")
    if logits.numel() < LOOKED_AT or not in_unit(logits):
        return
    more = torch.cat((subject.noisy_logits, subject.random_logits))
    if in_unit(more[more.isfinite().all(dim=1)]):
        span = f"{float(sums.min()):.3g} to {float(sums.max()):.3g}"
        raise ModelError(
            "outputs",
            f"outputs are between 0 and 1 and their rows sum to {span}, as sigmoids of several labels do; for these "
            "use --decision multilabel --outputs probs (decision='multilabel', outputs='probs'), otherwise return the "
            "class scores",
        )


def _total_of(logits: Tensor, sums: Tensor, exact: float) -> float | None:
    """Return the sum of every row where nothing is negative: 1 for probabilities, 100 for per cent; or None."""
    total = 1.0 if bool(((sums - 1).abs() <= exact).all()) else float(sums.median())
    if bool((logits < 0).any()) or total <= 0 or bool(((sums - total).abs() > exact * total).any()):
        return None
    if total == 1:
        return total
    if len(logits) < ENOUGH_ROWS or float(logits.max() - logits.min()) <= APART * total:
        return None
    # Standard deviation that the sums would have if the classes had nothing to do with each other.
    deviation = float(logits.double().var(dim=0).sum().sqrt())
    return total if deviation > exact * total else None


def _about_probabilities(logits: Tensor, exact: float) -> Iterator[Finding]:
    """Refuse rows that do not sum to 1; note a softmax over probabilities."""
    sums = logits.exp().sum(dim=1)
    if bool(((sums - 1).abs() > exact).any()):
        raise ModelError(
            "outputs",
            f"rows of probabilities of classes sum to {float(sums.min()):.3g} to {float(sums.max()):.3g}; for labels "
            f"add --decision multilabel (decision='multilabel'), for class scores leave out outputs='probs'",
        )
    # log softmax(q) = q + c where q are probabilities, and sum_k q_k = 1 gives c. Rows that are all unsure fit by
    # chance, so one must be sure.
    shares = logits + (1.0 - logits.sum(dim=1, keepdim=True)) / logits.shape[1]
    if bool(((shares >= -ROUNDED) & (shares <= 1.0 + ROUNDED)).all()) and bool((shares > SURE).any()):
        reason = f"in all {len(logits)} rows no class gets more than 2.72 times what another gets"
        advice = "if the model ends with two softmax layers, take one away"
        yield Finding("outputs", f"the probabilities are a softmax over probabilities: {reason}; {advice}")


MULTIPLY = {"mm", "addmm", "_addmm_activation", "mv", "addmv", "dot", "bmm", "baddbmm", "linear", "matmul"}
MULTIPLY |= {"convolution", "_convolution", "cudnn_convolution", "mkldnn_convolution"}
"""Operations that multiply by weights."""

DRAWS = 24  # networks with other weights: of a logit, none with large ones has the other sign once in 2^16 times
TURNED_ROWS = 8  # points that go through each
LARGE = 30.0  # size of the products, in margins, at which no constant that is added decides the sign
LARGEST = 1e6  # margin that is taken for this at most
AMOUNT = "for an amount use --decision within:T (decision='within:T'); otherwise return the logits"


def _advice(subject: Subject) -> str:
    """Say what to do where the sign of an output never changes."""
    if subject.classifier.outputs == "binary-logit":
        probabilities = "for the probability p of class 1 return [1 - p, p], for a class return [1, 0] or [0, 1]"
        return f"{probabilities}, and use --outputs probs (outputs='probs') instead of binary-logit; {AMOUNT}"
    if isinstance(subject.decision, Custom):
        return f"let the function compare a probability with 0.5; {AMOUNT}"
    if subject.classifier.outputs == "logits":
        return f"for probabilities of labels add --outputs probs (outputs='probs'); {AMOUNT}"
    return f"see that the model returns the probability of each label; {AMOUNT}"


class OtherWeights(TorchDispatchMode):
    """Gives the channels of every product with weights signs by chance and the size `size`, as other weights would."""

    def __init__(self, seed: int, size: float) -> None:
        super().__init__()
        self.products, self.size = 0, size
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        product = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in MULTIPLY and product.is_floating_point():
            self.products += 1
            wide = product.to(torch.promote_types(product.dtype, torch.float32))
            axes = [axis for axis in range(wide.dim()) if axis != 1]
            largest = wide.abs().amax(dim=axes, keepdim=True).clamp_min(torch.finfo(wide.dtype).tiny)
            signs = torch.randint(2, largest.shape, generator=self._generator).to(wide) * 2 - 1
            product.copy_(wide / largest * (signs * self.size))
        return product


def check_sides(subject: Subject) -> Iterator[Finding]:
    """Check that outputs whose sign decides, or that a function compares, can change what is decided."""
    decision = subject.decision
    if not isinstance(decision, MultiLabel | Custom) and subject.classifier.outputs != "binary-logit":
        return
    near = _outputs(subject, subject.inputs, subject.noisy, subject.random_inputs(min(subject.rows, LOOKED_AT)))
    stuck = ~_changes(subject, near)
    if not bool(stuck.all()):
        stuck &= (_margins(subject, near) != _margins(subject, near[:1])).any(dim=0)  # a masked label is no defect
    if not bool(stuck.any()):
        return
    turned, far = _turned(subject, near, stuck), _far(subject, near)
    still_stuck = stuck & ~_changes(subject, near, far)
    # Where outputs end at the threshold, margins far away come as near to it as one likes.
    smallest, smallest_far = (_margins(subject, outputs).abs().amin(dim=0) for outputs in (near, far))
    ends, inside = still_stuck & (smallest_far <= 1e-3 * smallest), in_unit(near) and in_unit(far)
    fixed = still_stuck & ~_changes(subject, near, *turned) if turned else still_stuck & (ends | inside)
    shown = near.double() if isinstance(decision, MultiLabel | Custom) else near[:, 1:].double()
    if isinstance(decision, MultiLabel | Custom) and subject.classifier.outputs == "probs":
        shown = shown.sigmoid()  # as the model returned them
    span = f"{float(shown.min()):.4g} and {float(shown.max()):.4g}"
    if bool(fixed.any()) or (inside and bool(ends.any())):
        is_part = len(fixed) == shown.shape[1] and bool(fixed.any()) and not bool(fixed.all())
        labels = f"label {listed(fixed.nonzero().flatten().tolist())} of " if is_part else ""
        raise ModelError(
            "outputs",
            f"{labels}the decision {decision.label} never changes in {len(near)} rows, noisy copies and random "
            f"inputs, nor with other weights or far away: the outputs lie between {span}; {_advice(subject)}",
        )
    correct, labelled = subject.right
    if bool(stuck.all()) and (not labelled or correct < labelled):
        accuracy = f", {correct} of {labelled} labelled ones right," if labelled else ""
        yield Finding(
            "outputs",
            f"{len(near)} rows, noisy copies and random inputs{accuracy} decide the same, from outputs between {span}; "
            f"see that their sign means what the decision {decision.label} says (that of a logit; probabilities, their "
            f"logarithms and amounts have one sign alone)",
        )


def _outputs(subject: Subject, *inputs: Tensor) -> Tensor:
    """Return the outputs that the decision reads at the `inputs`, `[N, ...]`, where they are finite."""
    with torch.no_grad():
        outputs = torch.cat([subject.classifier.read(batch, subject.take_extra(len(batch))) for batch in inputs])
    return outputs[outputs.flatten(1).isfinite().all(dim=1)]


def _margins(subject: Subject, outputs: Tensor) -> Tensor:
    """Return outputs less the threshold, `[N, K]`; for a user's function its margins of neighbours, `[N, 1]`."""
    decision = subject.decision
    if isinstance(decision, Custom):
        return decision.margins(outputs.roll(1, 0), outputs).amin(dim=1, keepdim=True)
    return decision.margins(outputs, torch.ones_like(outputs[:, :1], dtype=torch.int64))


def _changes(subject: Subject, *outputs: Tensor) -> Tensor:
    """Return for each margin whether the decision differs among the outputs, `[K]`."""
    margins = _margins(subject, torch.cat(outputs))
    below, above = (margins < 0).any(dim=0), (margins > 0).any(dim=0)
    return below if isinstance(subject.decision, Custom) else below & above


def _turned(subject: Subject, near: Tensor, stuck: Tensor) -> list[Tensor]:
    """Return outputs that other weights give, until none of the margins `[K]` is stuck; none where that shows nothing,
    as no product with weights is seen, or hardly any weights give finite outputs."""
    turned: list[Tensor] = []
    points = subject.inputs[:TURNED_ROWS]
    _outputs(subject, points)  # tables that a network keeps by shape are of its own weights
    margin = float(_margins(subject, near)[:, stuck].abs().max().clamp(1.0, LARGEST))
    for draw in range(DRAWS):
        weights = OtherWeights(draw, (1.0, LARGE, LARGE * margin)[draw % 3])
        try:
            with weights:
                outputs = _outputs(subject, points)
        except BrittleError:
            return []
        if not weights.products:
            return []
        turned += [outputs] * bool(len(outputs))
        if bool((_changes(subject, near, *turned) | ~stuck).all()):
            return turned
    return turned if len(turned) >= DRAWS // 3 else []


def _far(subject: Subject, near: Tensor) -> Tensor:
    """Return outputs 10 to 1,000 times as far away from a point, on either side, as a random one of the range; those
    that are `near` where the model does not take such inputs."""
    start = subject.inputs
    direction = subject.random_inputs(len(start)) - start
    try:
        far = _outputs(subject, *(start + times * direction for times in (-1e3, -1e2, -1e1, 1e1, 1e2, 1e3)))
    except BrittleError:
        return near
    return far if len(far) else near


def in_unit(outputs: Tensor) -> bool:
    return bool(((outputs >= 0) & (outputs <= 1)).all())
