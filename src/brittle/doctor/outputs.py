"""Does the model return class scores that look at the input, of the kind that was declared?"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from brittle.decisions import Custom, MultiLabel
from brittle.doctor.one_sided import check_sides
from brittle.doctor.rounding import allowed, allowed_of_sums
from brittle.doctor.subject import LOOKED_AT, Finding, Subject
from brittle.errors import ModelError, listed

ENOUGH_ROWS = 16
"""Rows that must have the same sum to be taken for probabilities of another total, such as 100."""

APART = 0.01
"""By how much they must differ, as a share of it: a large number that is added to all logits makes equal sums too."""

PROBES = 2
"""Inputs that have nothing to do with the points and must not get the same logits."""

SURE = 0.98
"""A trained model is that sure in some row; after a softmax over probabilities the logarithms still show it."""

ROUNDED = 1e-3
"""By how much such a probability may miss 0 and 1."""

SHOWN = 5
"""Classes that a message names."""

AGREE = 1e-3
"""Share of a margin, or of 1 where that is larger, by which two of the same outputs may differ."""

AGAIN = 3
"""Times that the same outputs are compared."""


def check_outputs(subject: Subject) -> Iterator[Finding | str]:
    """The logits are finite in at least one row, and differ between inputs; other rows get no number."""
    logits = subject.logits
    finite = subject.finite
    if len(finite) == 0:
        _refuse_masks(logits)
        kind = "NaN" if bool(logits.isnan().any()) else "infinite"
        raise ModelError(
            "nonfinite_logits",
            f"the model returned {kind} logits in all of the {len(logits)} rows looked at; check the weights and the "
            f"range of the inputs",
        )
    with torch.no_grad():
        probes = torch.cat([subject.logits_of(part) for part in subject.random_inputs(PROBES).split(subject.rows)])
    if _looks_beside_alone(subject, probes):
        raise ModelError(
            "constant_output",
            f"{len(probes)} random inputs got the logits of the points whose other tensors stood beside them; the "
            f"model does not look at the input that varies, see perturb=",
        )
    if bool((torch.cat((finite, probes)) == finite[0]).all()):
        first = ", ".join(f"{value:.4g}" for value in finite[0, :SHOWN].tolist())
        raise ModelError(
            "constant_output",
            f"the model returned the same logits ({first}…) for {len(finite)} rows and for {len(probes)} random "
            f"inputs; it does not look at its input",
        )
    yield f"finite in {len(finite)} of {len(logits)} rows; they differ between these and {len(probes)} random inputs"


def _refuse_masks(logits: Tensor) -> None:
    """Raise where classes are masked with minus infinity."""
    masked = (logits == -torch.inf).all(dim=0)
    if bool(masked.any()) and bool(logits[:, ~masked].isfinite().all(dim=1).any()):
        raise ModelError(
            "nonfinite_logits",
            f"the logits of class {listed(masked.nonzero().flatten().tolist(), SHOWN)} are -inf in all of the "
            f"{len(logits)} rows looked at: a mask; margins to it have no number, so leave the class out of the "
            f"output, or mask it with a finite number such as -1e4",
        )


def _looks_beside_alone(subject: Subject, probes: Tensor) -> bool:
    """Whether the logits of random inputs, `[P, C]`, are those of the points that have the same other tensors."""
    if subject.extra_inputs is None or not subject.extra_inputs.tensors or subject.rows < len(probes):
        return False
    rows = torch.arange(len(probes)) % len(subject.inputs)
    if torch.equal(subject.random_inputs(len(probes)), subject.inputs[rows]):  # points may be random numbers, too
        return False
    explained = allowed(subject.logits, subject.precision)[rows]
    return bool(((probes - subject.logits[rows]).abs() <= explained).all())


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
        others = outputs.roll(1, 0)
        first = decision.margins(others, outputs)
        for _ in range(AGAIN - 1):
            _check_same_margins(decision, first, decision.margins(others, outputs), "when it is called again")
        backwards = decision.margins(others.flip(0), outputs.flip(0)).flip(0)
        _check_same_margins(decision, first, backwards, "when the rows come in another order")
        pairs = zip(others.split(1), outputs.split(1), strict=True)
        alone = torch.cat([decision.margins(other, own) for other, own in pairs])
        _check_same_margins(decision, first, alone, "when it is given that row alone")
    yield f"{decision.label} gives the same margins of {len(outputs)} rows again, in another order and alone"


def _check_same_margins(decision: Custom, first: Tensor, other: Tensor, when: str) -> None:
    if other.shape != first.shape:
        raise ModelError(
            "decision",
            f"the function of the decision {decision.label} gave {first.shape[1]} margins a row and {other.shape[1]} "
            f"{when}; it must give as many for every output",
        )
    scale = first.abs().maximum(other.abs()).clamp_min(1.0)
    differ = ~((first - other).abs() <= AGREE * scale) & ~(first.isnan() & other.isnan()) & (first != other)
    if bool(differ.any()):
        row, column = (int(place[0]) for place in differ.nonzero(as_tuple=True))
        raise ModelError(
            "decision",
            f"the function of the decision {decision.label} gave the margin {float(first[row, column]):.4g} for row "
            f"{row}, and {float(other[row, column]):.4g} {when}; its margins must depend on the two outputs of a row "
            f"alone, and not on chance, earlier calls or other rows",
        )


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
    logits, declared = subject.finite, subject.classifier.outputs
    yield from check_sides(subject)
    if not subject.decision.of_classes:
        _refuse_classes(subject)
    elif declared == "logits":
        _refuse_probabilities(subject)
    elif declared == "probs":
        yield from _about_probabilities(subject)
    spread = f"from {float(logits.min()):.4g} to {float(logits.max()):.4g}"
    yield f"{subject.decision.label}, from {logits.shape[1]} {declared} {spread}"


def _refuse_classes(subject: Subject) -> None:
    """Refuse probabilities of labels that are those of classes, of which one holds."""
    if not isinstance(subject.decision, MultiLabel) or subject.classifier.outputs != "probs" or subject.classes < 3:
        return
    sums = subject.finite.double().sigmoid().sum(dim=1)
    if bool(((sums - 1).abs() <= allowed_of_sums(subject.classifier, subject.classes)).all()):
        raise ModelError(
            "outputs",
            f"each of {len(sums)} rows of {subject.classes} probabilities sums to 1: these are classes of which one "
            f"holds; leave out --decision multilabel (decision='multilabel')",
        )


def _refuse_probabilities(subject: Subject) -> None:
    """Refuse probabilities and sigmoids that were declared as logits; log-probabilities serve as such."""
    logits, exact = subject.finite, allowed_of_sums(subject.classifier, subject.classes)
    sums = logits.double().sum(dim=1)
    total = _total_of(logits, sums, exact)
    if total is not None:
        divided = "" if total == 1 else f"divide them by {total:.4g} and "
        raise ModelError(
            "outputs",
            f"every row of the output is between 0 and {total:.4g} and sums to {total:.4g}: these are probabilities; "
            f"{divided}use --outputs probs (outputs='probs'), which takes their logarithm",
        )
    if logits.numel() < LOOKED_AT or not _in_unit(logits):
        return
    more = torch.cat((subject.noisy_logits, subject.random_logits))
    if _in_unit(more[more.isfinite().all(dim=1)]):
        raise ModelError(
            "outputs",
            f"every output is between 0 and 1, but rows sum to {float(sums.min()):.3g} to {float(sums.max()):.3g}: "
            f"these look like sigmoids of a multi-label model; for one use --decision multilabel --outputs probs "
            f"(decision='multilabel', outputs='probs'), otherwise return the class scores",
        )


def _about_probabilities(subject: Subject) -> Iterator[Finding]:
    """Refuse rows that do not sum to 1; note a softmax over probabilities."""
    sums = subject.finite.double().exp().sum(dim=1)
    if bool(((sums - 1).abs() > allowed_of_sums(subject.classifier, subject.classes)).any()):
        raise ModelError(
            "outputs",
            f"the outputs were declared as probabilities of classes, but rows sum to {float(sums.min()):.3g} to "
            f"{float(sums.max()):.3g}; for labels that each hold or not add --decision multilabel "
            f"(decision='multilabel'), for class scores leave out --outputs probs (outputs='probs')",
        )
    # log softmax(q) = q + c where q are probabilities, and sum_k q_k = 1 gives c. Rows that are all unsure fit by
    # chance, so one must be sure.
    wide = subject.finite.double()
    first = wide + (1.0 - wide.sum(dim=1, keepdim=True)) / wide.shape[1]
    if bool(((first >= -ROUNDED) & (first <= 1.0 + ROUNDED)).all()) and bool((first > SURE).any()):
        yield Finding(
            "outputs",
            f"the probabilities are those of a softmax over probabilities: in all {len(wide)} rows no class gets more "
            f"than 2.72 times what another gets; if the model ends with two softmax layers, take one away",
        )


def _total_of(logits: Tensor, sums: Tensor, exact: float) -> float | None:
    """The sum of every row where nothing is negative: 1 for probabilities, 100 for those in per cent; or None."""
    total = 1.0 if bool(((sums - 1).abs() <= exact).all()) else float(sums.median())
    if bool((logits < 0).any()) or total <= 0 or bool(((sums - total).abs() > exact * total).any()):
        return None
    if total == 1:
        return total
    apart = len(logits) >= ENOUGH_ROWS and float(logits.max() - logits.min()) > APART * total
    # Standard deviation that the sums would have if the classes had nothing to do with each other.
    deviation = float(logits.double().var(dim=0).sum().sqrt())
    return total if apart and deviation > exact * total else None


def _in_unit(outputs: Tensor) -> bool:
    return bool(((outputs >= 0) & (outputs <= 1)).all())
