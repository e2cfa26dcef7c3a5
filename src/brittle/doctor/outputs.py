"""Does the model return class scores that look at the input, of the kind that was declared?

A sigmoid that is declared as a logit is positive at every input: nothing flips it, and every score would say so for
certain. A network may also predict the same everywhere and be right. What tells them apart is the last operation of the
network; of one outside PyTorch, inputs far away: there a logit leaves the range from 0 to 1, and a sigmoid does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from brittle.decisions import Custom, Decision, MultiLabel
from brittle.doctor.subject import LOOKED_AT, Finding, Subject
from brittle.errors import BrittleError, ModelError, listed

FAR = (-3.0, 4.0)
"""Shares of the range of the points within which far inputs lie, where no bounds are declared."""

FAR_AWAY = (-1e3, -1e2, -1e1, 1e1, 1e2, 1e3)
"""How many times as far away from a point, and on which side, an input lies than a random one of the range."""

NEARER = 1e-3
"""Share of the smallest margin at the points that a margin far away has at most, where outputs end at the threshold."""

AGREE = 5e-4
"""By how much margins of the same outputs may differ, and by which share of their size besides."""

ADVICE = (
    "of probabilities add --outputs probs (outputs='probs'), and beside it --decision multilabel (decision="
    "'multilabel') where labels hold each by itself; of an amount use --decision within:T, with a tolerance T; "
    "otherwise return the logits"
)

THROUGH = {"Clone", "ToCopy", "Cat", "Stack", "View", "Squeeze", "Unsqueeze", "Select", "Slice"}
THROUGH |= {"Mul", "Div", "Mean", "Sum", "Clamp"}
"""Operations, as autograd names them, that leave signs as they are."""

PROBABLE = {"Sigmoid", "Hardsigmoid", "Softmax"}
ONE_SIDED = PROBABLE | {"LogSigmoid", "LogSoftmax", "Exp", "Softplus", "Relu", "Pow"}
"""Operations whose results are probabilities, and those whose results never change sign, even powers among them."""

LOGIT = {"Sub", "Rsub", "Log", "ClampMin"}
"""Operations that turn declared probabilities into logits."""


def check_outputs(subject: Subject) -> Iterator[Finding | str]:
    """The logits are finite in at least one row, and differ between inputs; other rows get no number."""
    logits, classifier = subject.logits, subject.classifier
    finite = logits.isfinite().all(dim=1)
    if not bool(finite.any()):
        masked = (logits == -torch.inf).all(dim=0)
        found = "NaN logits" if bool(logits.isnan().any()) else "infinite logits"
        advice = "check the weights and the range of the inputs"
        if bool(masked.any()) and bool(logits[:, ~masked].isfinite().all(dim=1).any()):
            found = f"-inf for class {listed(masked.nonzero().flatten().tolist(), 5)}"
            advice = "margins to a mask have no number: leave the class out, or mask it with a finite number (-1e4)"
        raise ModelError(
            "nonfinite_logits", f"the model returned {found} in all of the {len(logits)} rows looked at; {advice}"
        )
    others = [subject.random_logits, subject.noisy_logits]
    if classifier.forward_only is not None:  # a tree has wide level parts, in which all first rows of a file may lie
        far = subject.random_inputs(LOOKED_AT, (0.0, 1.0) if classifier.bounds.finite else FAR).split(len(logits))
        others += [subject.logits_of(part) for part in far if len(part) == len(logits)]
    if all(torch.equal(each[finite], logits[finite]) for each in others):
        first = ", ".join(f"{value:.4g}" for value in logits[finite][0, :5].tolist())
        raise ModelError(
            "constant_output",
            f"{len(logits)} rows got the same logits ({first}…) as their noisy copies and as random inputs beside the "
            f"same other tensors; the model does not look at its input, or not at the one that varies (perturb=)",
        )
    yield f"finite in {int(finite.sum())} of {len(logits)} rows; they differ between these and other inputs"


def check_decision(subject: Subject) -> Iterator[Finding | str]:
    """A function of the user's that decides gives the same margins again, in another order and for a row alone.

    Each output is compared with that of the point before it, as if it were one of its copies.
    """
    decision = subject.decision
    if not isinstance(decision, Custom):
        yield "no function of yours decides"
        return
    with torch.no_grad():
        outputs = subject.classifier.read(subject.inputs, subject.extra_inputs)
        pairs = outputs.roll(1, 0), outputs
        first = decision.margins(*pairs)
        rows = zip(*(each.split(1) for each in pairs), strict=True)
        ways = {
            "when it is called again": decision.margins(*pairs),
            "in another order": decision.margins(*(each.flip(0) for each in pairs)).flip(0),
            "alone": torch.cat([decision.margins(*row) for row in rows]),
        }
    for how, other in ways.items():
        if other.shape != first.shape or not torch.allclose(first, other, AGREE, AGREE, equal_nan=True):
            raise ModelError(
                "decision",
                f"the function of the decision {decision.label} gave other margins of the same outputs {how}, "
                f"{list(first.shape)} and {list(other.shape)} of them; they must depend on the two outputs of a row "
                f"alone, and not on chance, earlier calls or other rows",
            )
    yield f"{decision.label} gives the same margins of {len(outputs)} rows again, in another order and alone"


def check_head(subject: Subject) -> Iterator[Finding | str]:
    """The logits are those of a linear layer, where a score reads its features."""
    if not any(need.uses_features for need in subject.needs):
        yield "no chosen score needs features"
        return
    with torch.no_grad():
        _, features = subject.classifier.observe(subject.inputs, subject.extra_inputs)
    yield f"{subject.classifier.head_name or 'the last linear layer'} sees {features.shape[1]} features"


def check_kind(subject: Subject) -> Iterator[Finding | str]:
    """The outputs are what was declared, and not probabilities, sigmoids or the outputs of another task."""
    logits, declared = subject.logits[subject.logits.isfinite().all(dim=1)].double(), subject.classifier.outputs
    # By how much a sum of probabilities may miss 1: each is rounded by its own size, and adding them up rounds again.
    exact = 8.0 * float(torch.finfo(subject.classifier.output_dtype).eps) * math.log2(2 * subject.classes)
    if isinstance(subject.decision, MultiLabel | Custom) or declared == "binary-logit":
        yield from _about_sides(subject)
    if isinstance(subject.decision, MultiLabel) and declared == "probs" and subject.classes > 2:
        if bool(((logits.sigmoid().sum(dim=1) - 1).abs() <= exact).all()):
            raise ModelError(
                "outputs",
                f"each of {len(logits)} rows of {subject.classes} probabilities sums to 1: these are classes of which "
                f"one holds; leave out --decision multilabel (decision='multilabel')",
            )
    elif subject.decision.has_classes and declared == "logits":
        sums = logits.sum(dim=1)
        if bool((logits >= 0).all()) and bool(((sums - 1).abs() <= exact).all()):
            raise ModelError(
                "outputs",
                "every row of the output is between 0 and 1 and sums to 1: these are probabilities; use --outputs "
                "probs (outputs='probs'), which takes their logarithm",
            )
        others = torch.cat((logits, subject.noisy_logits, subject.random_logits))
        if logits.numel() >= LOOKED_AT and _in_unit(others):
            raise ModelError(
                "outputs",
                f"every output is between 0 and 1, but rows sum to {float(sums.min()):.3g} to {float(sums.max()):.3g}: "
                f"these look like sigmoids of a multi-label model; {ADVICE}",
            )
    elif subject.decision.of_classes and declared == "probs":
        sums = logits.exp().sum(dim=1)
        if bool(((sums - 1).abs() > exact).any()):
            raise ModelError(
                "outputs",
                f"the outputs were declared as probabilities of classes, but rows sum to {float(sums.min()):.3g} to "
                f"{float(sums.max()):.3g}; for labels that each hold or not add --decision multilabel "
                f"(decision='multilabel'), for class scores leave out --outputs probs (outputs='probs')",
            )
    yield f"{subject.decision.label}, {declared} from {float(logits.min()):.4g} to {float(logits.max()):.4g}"


def _in_unit(outputs: Tensor) -> bool:
    """Whether all that are finite are between 0 and 1."""
    return bool((((outputs >= 0) & (outputs <= 1)) | ~outputs.isfinite()).all())


def _about_sides(subject: Subject) -> Iterator[Finding]:
    """Refuse outputs whose sign decides and cannot change; note a decision that is the same everywhere."""
    decision, classifier, inputs = subject.decision, subject.classifier, subject.inputs
    near = _outputs(subject, inputs, subject.noisy, subject.random_inputs(len(inputs)))
    if _changes(decision, near):
        return
    last = _last_operations(subject)
    span = f"{float(near.min()):.4g} and {float(near.max()):.4g}"
    sided = last <= ONE_SIDED if last else classifier.outputs != "probs" and _ends_far_away(subject, near)
    if sided and not isinstance(decision, Custom):
        raise ModelError(
            "outputs",
            f"the decision {decision.label} never changes in {len(near)} rows, noisy copies and random inputs: the "
            f"outputs lie between {span} and have one sign for good ({', '.join(sorted(last)) or 'even far away'}); "
            f"{ADVICE}",
        )
    correct, labelled = subject.right
    if not labelled or correct < labelled:
        yield Finding(
            "outputs",
            f"{len(near)} rows, noisy copies and random inputs decide the same, from outputs between {span}; see that "
            f"their sign means what the decision {decision.label} says (that of a logit; probabilities, their "
            f"logarithms and amounts have one sign alone)",
        )


def _last_operations(subject: Subject) -> set[str]:
    """The last operations of the outputs that can change a sign, as autograd names them; none where it records none."""
    inputs, found = subject.inputs[:1].clone().requires_grad_(True), set[str]()
    try:
        steps = [(subject.logits_of(inputs).grad_fn, subject.classifier.outputs == "probs")]
    except BrittleError:  # where gradients are recorded, which the scores may not need
        return found
    while steps:
        step, probabilities = steps.pop()  # `probabilities`: those that were declared come further back
        if step is None or getattr(step, "variable", inputs) is not inputs:  # what does not depend on the input
            continue
        name, before = _name(step), [each for each, _ in step.next_functions]
        several = name == "Add" and None not in before  # a constant that is added may change a sign
        declared = probabilities and name in PROBABLE
        if declared or name in THROUGH or several or (probabilities and name in LOGIT):
            steps += [(each, probabilities and not declared) for each in before]
        elif name == "Log" and all(_name(each) in PROBABLE for each in before):
            steps += [(each, False) for each in before]
        else:
            found.add(name)
    return found


def _name(step: Any) -> str:
    return step.name().partition("Backward")[0]


def _outputs(subject: Subject, *inputs: Tensor) -> Tensor:
    """What is decided from, at the `inputs`, `[N, ...]`, where it is finite."""
    with torch.no_grad():
        outputs = torch.cat([subject.classifier.read(each, subject.beside(len(each))) for each in inputs])
    return outputs[outputs.flatten(1).isfinite().all(dim=1)]


def _ends_far_away(subject: Subject, near: Tensor) -> bool:
    """Whether outputs far away decide the same, between 0 and 1 as `near`, or as if they ended at the threshold."""
    way = subject.random_inputs(len(subject.inputs)) - subject.inputs
    try:
        far = _outputs(subject, *(subject.inputs + times * way for times in FAR_AWAY))
    except BrittleError:  # the model does not take such inputs
        far = near[:0]
    if not len(far):
        return _in_unit(near)
    least = [_margins(subject.decision, each).abs().amin() for each in (near, far)]
    ends = _in_unit(torch.cat((near, far))) or bool(least[1] <= NEARER * least[0])
    return ends and not _changes(subject.decision, torch.cat((near, far)))


def _margins(decision: Decision, outputs: Tensor) -> Tensor:
    """How far outputs are above the threshold, `[N, K]`; of a user's function what it says of neighbours."""
    if isinstance(decision, Custom):
        return decision.margins(outputs.roll(1, 0), outputs)
    return decision.margins(outputs, torch.ones_like(outputs[:, :1], dtype=torch.int64))


def _changes(decision: Decision, outputs: Tensor) -> bool:
    """Whether what is decided differs among outputs."""
    margins = _margins(decision, outputs)
    below, above = (margins < 0).any(dim=0), (margins > 0).any(dim=0)
    return bool((below if isinstance(decision, Custom) else below & above).any())
