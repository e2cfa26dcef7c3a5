"""What `brittle doctor` says besides the checks: of the first rows, of the model, and of what the run would cost.

Nothing here stops a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from torch import Tensor, nn

from brittle.doctor.checks import FAILED, NOTE, OK, Outcome
from brittle.doctor.data import about_accuracy, about_orientation, check_accuracy
from brittle.doctor.subject import Finding, Subject, unweighted
from brittle.errors import BrittleError
from brittle.estimate import CONFIDENCE
from brittle.intervals import clopper_pearson
from brittle.measure import Certified, Passes
from brittle.measure.base import by_stream
from brittle.text import duration

TIMED = 3
"""Batches of which the fastest is taken for the time of one."""


def look(
    subject: Subject, expected_accuracy: float | None = None, notes: tuple[Finding, ...] = ()
) -> Iterator[Outcome]:
    """One outcome a question, about all rows of the subject's batch; for a model that runs.

    Args:
        subject: what is looked at.
        expected_accuracy: fail where the accuracy is surely below, as a run does.
        notes: findings of the checks, one of which may explain the accuracy.
    """
    batch, scored = subject.batch, set(subject.predicted[0])
    lost = [row for place, row in enumerate(batch.rows) if place not in scored]
    if lost:
        said = (
            f"{len(lost)} of the first {len(batch)} rows get no score, the first of them row {lost[0]}: they cannot be "
            f"read, or input or logits are NaN or infinite; a run stops at more than 10 of the first 1,000"
        )
        yield Outcome("rows", NOTE, "rows_without_score", said)
    else:
        yield Outcome("rows", OK, None, f"all of the first {len(batch)} get finite class scores")
    if batch.turned is not None:
        applied = subject.provenance.get("exif") == "apply"
        found = next(about_orientation(sum(batch.turned), len(batch), applied=applied), None)
        yield _outcome("images", f"none of {len(batch)} is turned by its EXIF data", found)
    try:
        if expected_accuracy is not None:
            check_accuracy(expected_accuracy, subject, notes)
    except BrittleError as error:
        yield Outcome("accuracy", FAILED, error.code, str(error.args[0]))
        return
    (correct, labelled), found = subject.right, None
    if subject.decision.of_classes and not subject.chosen:
        made = unweighted(subject.classifier.source)
        found = next(about_accuracy(correct, labelled, subject.classes, subject.confusion, unweighted=made), None)
    yield _outcome("accuracy", _accuracy(subject), found)


def _outcome(name: str, sentence: str, found: Finding | None) -> Outcome:
    return Outcome(name, NOTE, found.code, found.sentence) if found else Outcome(name, OK, None, sentence)


def gather(subject: Subject) -> Iterator[tuple[str, str]]:
    """Name and sentence of everything else that is known; of what cannot be told, why."""
    facts: dict[str, Callable[[Subject], str]] = {
        "model": _model,
        "shape": _shape,
        "cost": cost_of_run,
    }
    for name, tell in facts.items():
        try:
            yield name, tell(subject)
        except BrittleError as error:
            yield name, f"unknown: {error}"


def _model(subject: Subject) -> str:
    model = subject.classifier.model
    learned = sum(parameter.numel() for parameter in model.parameters()) if isinstance(model, nn.Module) else 0
    outputs = f"{subject.classes} classes" if subject.decision.has_classes else f"decision {subject.decision.label}"
    return f"{outputs}, {learned:,} parameters, logits of {subject.logits.dtype}, on {subject.classifier.device}"


def _shape(subject: Subject) -> str:
    found = subject.curved
    flat, kinks, count = int(found.flat.sum()), int(found.kink.sum()), len(found.flat)
    kind = "piecewise linear" if flat == count else "smooth, it bends" if flat == 0 else "of both kinds"
    return f"{kind} (no second derivative at {flat} of {count} points); a kink at {kinks} of {count} points"


def _accuracy(subject: Subject) -> str:
    """Accuracy on the labelled points, with an interval."""
    correct, labelled = subject.right
    if not labelled:
        return "no labelled points were looked at"
    low, high = clopper_pearson(correct, labelled, CONFIDENCE)
    interval = f"{float(low):.1%} to {float(high):.1%} at {CONFIDENCE:.0%}"
    chosen = ", which were chosen by their ids" if subject.chosen else ""
    return f"{correct / labelled:.1%} of {labelled} labelled points ({interval}){chosen}"


def passes_per_point(subject: Subject) -> Passes:
    """What the chosen scores spend on a point, the clean pass included and certificates not: as measurements say."""
    spent = Passes(1, 0)
    for needs in by_stream(need for need in subject.needs if not isinstance(need, Certified)):
        spent += max((need.cost(subject) for need in needs), key=lambda each: each.total)
    return spent


def cost_of_run(subject: Subject) -> str:
    """Time that the network takes, from timed batches and the passes that measurements say."""
    inputs = subject.inputs.clone().requires_grad_(subject.differentiates)
    forward = min(_seconds(lambda: subject.logits_of(inputs)) for _ in range(TIMED)) / len(inputs)
    backward = 0.0
    if subject.differentiates:
        logits = subject.logits_of(inputs)
        try:
            backward = _seconds(lambda: subject.classifier.gradient(logits.amax(dim=1), inputs, keep=False))
        except BrittleError:
            backward = forward * len(inputs)
    backward /= len(inputs)
    count, spent = len(subject.batch if subject.points is None else subject.points), passes_per_point(subject)
    seconds = count * (spent.forward * forward + spent.backward * backward)
    also = ", certificates" if any(isinstance(need, Certified) for need in subject.needs) else ""
    return (
        f"the network takes about {duration(seconds)} for {count:,} points ({spent.forward:,.0f} forward and "
        f"{spent.backward:,.0f} backward passes a point, {1e3 * forward:.2g} and {1e3 * backward:.2g} ms each in "
        f"batches of {len(inputs)}), to which reading, noise{also} and searches add their own; an estimate"
    )


def _seconds(take: Callable[[], Tensor]) -> float:
    started = time.perf_counter()
    float(take().detach().sum())  # a number that is read, so the device is done
    return time.perf_counter() - started
