"""Does the model return class scores that look at the input, of the kind that was declared?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from brittle.decisions import Custom, MultiLabel
from brittle.doctor.one_sided import check_sides, in_unit
from brittle.doctor.subject import LOOKED_AT, Finding, Subject
from brittle.errors import ModelError, listed
from brittle.model.arrays import SMALLEST_PROBABILITY
from brittle.model.texts import is_text_function

AROUND = (-3.0, 4.0)
"""Shares of the range of the points within which far inputs lie, where no bounds are declared."""

AGREE = 5e-4
"""By how much margins of the same outputs may differ, and by which share of their size besides."""

ENOUGH_ROWS, APART = 16, 0.01
"""Rows that must have the same sum to be taken for probabilities of another total, such as 100; and by how much they
must differ, as a share of it: a large number that is added to all logits makes equal sums, too."""

SURE, ROUNDED = 0.98, 1e-3
"""A trained model is that sure in some row; after a softmax over probabilities the logarithms still show it, and by how
much such a probability may miss 0 and 1."""


def check_outputs(subject: Subject) -> Iterator[Finding | str]:
    """The logits are finite in at least one row, and differ between inputs; other rows get no number."""
    logits, classifier = subject.logits, subject.classifier
    finite = logits.isfinite().all(dim=1)
    if not bool(finite.any()):
        masked = (logits == -torch.inf).all(dim=0)
        found = "NaN logits" if bool(logits.isnan().any()) else "infinite logits"
        advice = "check the weights and the range of the inputs"
        if bool(masked.any()) and bool(logits[:, ~masked].isfinite().all(dim=1).any()):
            found = f"-inf for class {listed(masked.nonzero().flatten().tolist())}"
            advice = "margins to a mask have no number: leave the class out, or mask it with a finite number (-1e4)"
        raise ModelError(
            "nonfinite_logits", f"the model returned {found} in all of the {len(logits)} rows looked at; {advice}"
        )
    others = [subject.random_logits]
    if classifier.forward_only is not None:  # a tree has wide level parts, in which all first rows of a file may lie
        far = subject.random_inputs(LOOKED_AT, (0.0, 1.0) if classifier.bounds.finite else AROUND).split(len(logits))
        others += [subject.logits_of(part) for part in far if len(part) == len(logits)]
    alike = all(torch.equal(each[finite], logits[finite]) for each in others)
    alike &= not subject.decision.may_be_empty or bool((logits != 0).any())
    if alike and torch.equal(subject.noisy_logits[finite], logits[finite]) and subject.takes_others:
        first = ", ".join(f"{value:.4g}" for value in logits[finite][0, :5].tolist())
        found = f"{len(logits)} rows got the same logits ({first}…) as their noisy copies and as random inputs"
        if not is_text_function(classifier.model):  # which may well call all that it sees at first safe
            raise ModelError(
                "constant_output",
                f"{found} beside the same other tensors; the model does not look at its input, or not at the one that "
                f"varies (perturb=)",
            )
        yield Finding("constant_output", f"{found}; look whether the function reads its texts")
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
            raise ModelError(
                "outputs",
                f"each of {len(logits)} rows of {subject.classes} probabilities sums to 1: these are classes of which "
                f"one holds; leave out --decision multilabel (decision='multilabel')",
            )
    elif subject.decision.has_classes and declared == "logits":
        _refuse_probabilities(subject, logits, exact)
    elif subject.decision.of_classes and declared == "probs":
        # An estimator's 0 is raised to the smallest probability.
        yield from _about_probabilities(logits.double(), max(exact, subject.classes * SMALLEST_PROBABILITY))
    yield from _compare_probabilities(subject)
    spread = f"from {float(logits.min()):.4g} to {float(logits.max()):.4g}"
    yield f"{subject.decision.label}, from {logits.shape[1]} {declared} {spread}"


def _compare_probabilities(subject: Subject) -> Iterator[Finding]:
    """Note where an estimator gives another class than it decides the largest probability, or rows do not sum to 1."""
    classifier = subject.classifier
    if not (classifier.own_probability and any(score.serves == "probability" for score in subject.scores)):
        return
    with torch.no_grad():
        logs = classifier.log_probabilities(subject.inputs, subject.extra_inputs)
    sums, decided = logs.exp().sum(dim=1), logs.gather(1, subject.logits.argmax(dim=1, keepdim=True))[:, 0]
    if differing := int((decided < logs.amax(dim=1)).sum()):
        yield Finding(
            "outputs",
            f"the largest predict_proba is that of another class than the largest decision_function in {differing} of "
            f"{len(logs)} rows; the second decides, and scores of a probability read the first",
        )
    if bool(((sums - 1).abs() > ROUNDED).any()):
        yield Finding(
            "outputs",
            f"rows of predict_proba sum to {float(sums.min()):.3g} to {float(sums.max()):.3g}; scores of a probability "
            f"read shares of that sum",
        )


def _refuse_probabilities(subject: Subject, logits: Tensor, exact: float) -> None:
    """Refuse probabilities and sigmoids that were declared as logits; log-probabilities serve as such."""
    sums = logits.double().sum(dim=1)
    total = _total_of(logits, sums, exact)
    if total is not None:
        divided = "" if total == 1 else f"divide them by {total:.4g} and "
        raise ModelError(
            "outputs",
            f"every row of the output is between 0 and {total:.4g} and sums to {total:.4g}: these are probabilities; "
            f"{divided}use --outputs probs (outputs='probs'), which takes their logarithm",
        )
    if logits.numel() < LOOKED_AT or not in_unit(logits):
        return
    more = torch.cat((subject.noisy_logits, subject.random_logits))
    if in_unit(more[more.isfinite().all(dim=1)]):
        raise ModelError(
            "outputs",
            f"every output is between 0 and 1, but rows sum to {float(sums.min()):.3g} to {float(sums.max()):.3g}: "
            f"these look like sigmoids of a multi-label model; for one use --decision multilabel --outputs probs "
            f"(decision='multilabel', outputs='probs'), otherwise return the class scores",
        )


def _total_of(logits: Tensor, sums: Tensor, exact: float) -> float | None:
    """The sum of every row where nothing is negative: 1 for probabilities, 100 for those in per cent; or None."""
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
            f"the outputs were declared as probabilities of classes, but rows sum to {float(sums.min()):.3g} to "
            f"{float(sums.max()):.3g}; for labels that each hold or not add --decision multilabel "
            f"(decision='multilabel'), for class scores leave out --outputs probs (outputs='probs')",
        )
    # log softmax(q) = q + c where q are probabilities, and sum_k q_k = 1 gives c. Rows that are all unsure fit by
    # chance, so one must be sure.
    first = logits + (1.0 - logits.sum(dim=1, keepdim=True)) / logits.shape[1]
    if bool(((first >= -ROUNDED) & (first <= 1.0 + ROUNDED)).all()) and bool((first > SURE).any()):
        yield Finding(
            "outputs",
            f"the probabilities are those of a softmax over probabilities: in all {len(logits)} rows no class gets "
            f"more than 2.72 times what another gets; if the model ends with two softmax layers, take one away",
        )
