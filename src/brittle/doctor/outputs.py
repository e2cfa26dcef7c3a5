"""Does the model return class scores that look at the input?"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from brittle.decisions import MultiLabel
from brittle.doctor.finding import Finding
from brittle.doctor.one_sided import check_sides
from brittle.doctor.rounding import allowed, allowed_of_sums
from brittle.doctor.subject import LOOKED_AT, Subject
from brittle.errors import ModelError, listed

SEEN, LOW = 0.02, -0.5
"""Outputs look like labels, each of which holds or not, where in at least this share of the rows none is positive, in
as many several are, and their mean is this many of their standard deviations from 0 in the median."""

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


def check_forward(subject: Subject) -> Iterator[Finding | str]:
    """The model takes the inputs and returns class scores."""
    logits = subject.logits
    taken = subject.classifier.taken
    shapes = f"{list(subject.inputs.shape)} gave {list(logits.shape)}, {_name(subject.classifier.output_dtype)}"
    yield shapes if taken is None else f"{shapes}, taken from {taken}"


def check_finite(subject: Subject) -> Iterator[Finding | str]:
    """The logits are finite in at least one row; rows where they are not get no number."""
    logits, finite = subject.logits, len(subject.finite)
    if finite == 0:
        _refuse_masks(logits)
        kind = "NaN" if bool(logits.isnan().any()) else "infinite"
        raise ModelError(
            "nonfinite_logits",
            f"the model returned {kind} logits in all of the {len(logits)} rows looked at; check the weights and the "
            f"range of the inputs",
        )
    yield f"finite in {finite} of {len(logits)} rows"


def check_constant(subject: Subject) -> Iterator[Finding | str]:
    """The logits differ between inputs."""
    logits = subject.finite
    with torch.no_grad():
        probes = torch.cat([subject.logits_of(part) for part in subject.random_inputs(PROBES).split(subject.rows)])
    if _looks_beside_alone(subject, probes):
        raise ModelError(
            "constant_output",
            f"{len(probes)} random inputs got the logits of the points whose other tensors stood beside them; the "
            f"model does not look at the input that varies, see perturb=",
        )
    if bool((torch.cat((logits, probes)) == logits[0]).all()):
        first = ", ".join(f"{value:.4g}" for value in logits[0, :5].tolist())
        raise ModelError(
            "constant_output",
            f"the model returned the same logits ({first}…) for {len(logits)} rows and for {len(probes)} random "
            f"inputs; it does not look at its input",
        )
    yield f"they differ between {len(logits)} rows and {len(probes)} random inputs"


def _looks_beside_alone(subject: Subject, probes: Tensor) -> bool:
    """Whether the logits of random inputs, `[P, C]`, are those of the points that have the same other tensors."""
    if subject.aside is None or not subject.aside.tensors or subject.rows < len(probes):
        return False
    rows = torch.arange(len(probes)) % len(subject.inputs)
    if torch.equal(subject.random_inputs(len(probes)), subject.inputs[rows]):  # points may be random numbers, too
        return False
    explained = allowed(subject.logits, subject.precision)[rows]
    return bool(((probes - subject.logits[rows]).abs() <= explained).all())


def check_kind(subject: Subject) -> Iterator[Finding | str]:
    """The outputs are what was declared, and not probabilities, sigmoids or the outputs of another task."""
    logits, declared = subject.finite, subject.classifier.outputs
    yield from check_sides(subject)
    if not subject.decision.of_classes:
        _refuse_classes(subject)
        yield f"{subject.decision.label}: {subject.decision.explanation}, from {logits.shape[1]} numbers"
        return
    yield f"declared as {declared}, from {float(logits.min()):.4g} to {float(logits.max()):.4g}"
    yield from {"logits": _about_logits, "probs": _about_probabilities}.get(declared, lambda _: ())(subject)


def _refuse_classes(subject: Subject) -> None:
    """Refuse probabilities of labels that are those of classes, of which one holds."""
    shown = subject.finite.double().sigmoid()
    probs = isinstance(subject.decision, MultiLabel) and subject.classifier.outputs == "probs"
    if (
        probs
        and shown.shape[1] > 2
        and bool(((shown.sum(dim=1) - 1).abs() <= allowed_of_sums(subject.classifier, subject.classes)).all())
    ):
        raise ModelError(
            "outputs",
            f"each of {len(shown)} rows of {shown.shape[1]} probabilities sums to 1: these are classes of which one "
            f"holds; leave out --decision multilabel (decision='multilabel')",
        )


def _about_logits(subject: Subject) -> Iterator[Finding]:
    """Refuse probabilities and sigmoids, note log-probabilities."""
    logits, allowed = subject.finite, allowed_of_sums(subject.classifier, subject.classes)
    sums = logits.double().sum(dim=1)
    whole = _total(logits, sums, allowed)
    if whole is not None:
        divided = "" if whole == 1 else f"divide them by {whole:.4g} and "
        raise ModelError(
            "outputs",
            f"every row of the output is between 0 and {whole:.4g} and sums to {whole:.4g}: these are probabilities; "
            f"{divided}use --outputs probs (outputs='probs'), which takes their logarithm",
        )
    if logits.numel() >= LOOKED_AT and _inside(logits) and _inside(more_logits(subject)):
        raise ModelError(
            "outputs",
            f"every output is between 0 and 1, but rows sum to {float(sums.min()):.3g} to {float(sums.max()):.3g}: "
            f"these look like sigmoids of a multi-label model; for one use --decision multilabel --outputs probs "
            f"(decision='multilabel', outputs='probs'), otherwise return the class scores",
        )
    if subject.labels is None:
        yield from _perhaps_labels(logits)
    if bool((torch.logsumexp(logits.double(), dim=1).abs() <= allowed).all()):
        yield Finding("softmax_twice", "the outputs are log-probabilities (log-softmax); they serve as logits")


def _perhaps_labels(logits: Tensor) -> Iterator[Finding]:
    """Ask about outputs that look like several labels, each of which holds or not.

    Training with the cross-entropy of a softmax leaves the sum of the class scores where it began, near 0; labels of
    which few hold draw it far below, and then hold at none, one or several places at once.
    """
    if logits.shape[1] < 3 or len(logits) < ENOUGH_ROWS:
        return
    positive, low = (logits > 0).sum(dim=1), (logits.mean(dim=1) / logits.std(dim=1)).median()
    none, several = (float(each.double().mean()) for each in (positive == 0, positive > 1))
    if min(none, several) >= SEEN and float(low) < LOW:
        yield Finding(
            "perhaps_multilabel",
            f"all outputs are below 0 in {none:.0%} of the rows looked at, and several above it in {several:.0%}: are "
            f"these several labels, each of which holds or not? Then use --decision multilabel (decision='multilabel')",
        )


def _about_probabilities(subject: Subject) -> Iterator[Finding]:
    """Refuse rows that do not sum to 1."""
    sums = subject.finite.double().exp().sum(dim=1)
    if bool(((sums - 1).abs() > allowed_of_sums(subject.classifier, subject.classes)).any()):
        raise ModelError(
            "outputs",
            f"the outputs were declared as probabilities of classes, but rows sum to {float(sums.min()):.3g} to "
            f"{float(sums.max()):.3g}; for labels that each hold or not add --decision multilabel "
            f"(decision='multilabel'), for class scores leave out --outputs probs (outputs='probs')",
        )
    if _softmax_of_probabilities(subject.finite):
        yield Finding(
            "softmax_twice",
            f"the probabilities are those of a softmax over probabilities: in all {len(subject.finite)} rows no class "
            f"gets more than 2.72 times what another gets; if the model ends with two softmax layers, take one away",
        )


def _softmax_of_probabilities(logits: Tensor) -> bool:
    """Whether these log-probabilities are a probability each, but for a constant of the row, and reach near 0 and 1.

    `log softmax(q) = q + c` where `q` are probabilities, and `sum_k q_k = 1` gives `c`. Rows that are all unsure fit by
    chance, so one must be sure: `max_k q_k > SURE`.
    """
    wide = logits.double()
    first = wide + (1.0 - wide.sum(dim=1, keepdim=True)) / wide.shape[1]
    return bool(((first >= -ROUNDED) & (first <= 1.0 + ROUNDED)).all()) and bool((first > SURE).any())


def _total(logits: Tensor, sums: Tensor, allowed: float) -> float | None:
    """What all rows sum to where nothing is negative: 1 for probabilities, 100 for those in per cent; or None."""
    whole = 1.0 if bool(((sums - 1).abs() <= allowed).all()) else float(sums.median())
    if bool((logits < 0).any()) or whole <= 0 or bool(((sums - whole).abs() > allowed * whole).any()):
        return None
    if whole == 1:
        return whole
    apart = len(logits) >= ENOUGH_ROWS and float(logits.max() - logits.min()) > APART * whole
    return whole if apart and _would_vary(logits) > allowed * whole else None


def _would_vary(logits: Tensor) -> float:
    """Standard deviation that the sums of the rows would have if the classes had nothing to do with each other."""
    return float(logits.double().var(dim=0).sum().sqrt())


def more_logits(subject: Subject) -> Tensor:
    """Finite logits of noisy copies of the points, and of inputs that have nothing to do with them, `[N, C]`."""
    with torch.no_grad():
        random = subject.logits_of(subject.random_inputs(min(subject.rows, LOOKED_AT)))
    logits = torch.cat((subject.noisy_logits, random))
    return logits[logits.isfinite().all(dim=1)]


def _inside(outputs: Tensor) -> bool:
    return bool(((outputs >= 0) & (outputs <= 1)).all())


def _refuse_masks(logits: Tensor) -> None:
    """Raise where classes are masked with minus infinity."""
    masked = (logits == -torch.inf).all(dim=0)
    if not bool(masked.any()) or not bool(logits[:, ~masked].isfinite().all(dim=1).any()):
        return
    classes = masked.nonzero().flatten().tolist()
    raise ModelError(
        "nonfinite_logits",
        f"the logits of class {listed(classes, SHOWN)} are -inf in all of the {len(logits)} rows "
        f"looked at: a mask; margins to it have no number, so leave the class out of the output, or mask it with a "
        f"finite number such as -1e4",
    )


def check_head(subject: Subject) -> Iterator[Finding | str]:
    """The logits are those of a linear layer, where a score reads its features."""
    if not any(need.uses_features for need in subject.needs):
        yield "no chosen score needs features"
        return
    with torch.no_grad():
        _, features = subject.classifier.observe(subject.inputs, subject.aside)
    yield f"{subject.classifier.head_name or 'the last linear layer'} sees {features.shape[1]} features"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
