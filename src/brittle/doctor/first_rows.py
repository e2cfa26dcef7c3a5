"""What the model makes of the first rows: how many it can score, how many are right, how many images are turned."""

from __future__ import annotations

from collections.abc import Iterator

from brittle.doctor.checks import FAILED, NOTE, OK, Outcome
from brittle.doctor.data import about_orientation
from brittle.doctor.finding import Finding
from brittle.doctor.labels import about_accuracy, check_accuracy, unweighted
from brittle.doctor.subject import Subject
from brittle.errors import BrittleError
from brittle.estimate import CONFIDENCE
from brittle.intervals import clopper_pearson


def look(subject: Subject, expected_accuracy: float | None = None) -> Iterator[Outcome]:
    """One outcome a question, about all rows of the subject's batch; for a model that runs.

    Args:
        subject: what is looked at.
        expected_accuracy: fail where the accuracy is surely below, as a run does.
    """
    batch = subject.batch
    yield _outcome("rows", *_about_rows(subject))
    if batch.turned is not None and subject.points is not None:
        applied = subject.points.provenance.get("exif") == "apply"
        found = next(about_orientation(sum(batch.turned), len(batch), applied=applied), None)
        yield _outcome("images", f"none of {len(batch)} is turned by its EXIF data", found)
    if expected_accuracy is not None:
        try:
            check_accuracy(expected_accuracy, subject)
        except BrittleError as error:
            yield Outcome("accuracy", FAILED, error.code, str(error.args[0]))
            return
    yield _outcome("accuracy", *_about_accuracy(subject))


def accuracy(subject: Subject) -> str:
    """Accuracy on the labelled points of the subject's batch, with an interval."""
    return _about_accuracy(subject)[0]


def _outcome(name: str, said: str, found: Finding | None) -> Outcome:
    return Outcome(name, NOTE, found.code, found.sentence) if found else Outcome(name, OK, None, said)


def _about_rows(subject: Subject) -> tuple[str, Finding | None]:
    """How many rows get class scores, and where some do not."""
    count, scored = len(subject.batch), subject.predictions.positions
    if len(scored) == count:
        return f"all of the first {count} get finite class scores", None
    first = subject.batch.rows[min(set(range(count)) - set(scored))]
    sentence = (
        f"{count - len(scored)} of the first {count} rows get no score, the first of them row {first}: they cannot be "
        f"read, or input or logits are NaN or infinite; a run stops at more than 10 of the first 1,000"
    )
    return "", Finding("rows_without_score", sentence)


def _about_accuracy(subject: Subject) -> tuple[str, Finding | None]:
    """Accuracy on the labelled points, with an interval, and what is suspicious about it."""
    correct, labelled = subject.predictions.right
    if not labelled:
        return "no labelled points were looked at", None
    low, high = clopper_pearson(correct, labelled, CONFIDENCE)
    interval = f"{float(low):.1%} to {float(high):.1%} at {CONFIDENCE:.0%}"
    said = f"{correct / labelled:.1%} of {labelled} labelled points ({interval})"
    if not subject.decision.of_classes:
        return said, None
    if subject.points is not None and subject.points.provenance.get("chosen_from") is not None:
        return f"{said}, which were chosen by their ids", None
    classes, confusion = subject.logits.shape[1], subject.predictions.confusion
    made = unweighted(subject.classifier.source)
    return said, next(about_accuracy(correct, labelled, classes, confusion, unweighted=made), None)
