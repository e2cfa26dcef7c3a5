"""What is wrong with this model, these data, these settings, before anything is scored.

Each check looks at a few of the points and either raises, with what was found and what to do, or notes a finding that
goes into the run record and onto the report. One question a file; `docs/doctor.md` explains every code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brittle.data.points import Batch, Points
from brittle.doctor.checks import raise_or_note
from brittle.doctor.data import digest
from brittle.doctor.finding import Finding
from brittle.doctor.reference import Reference
from brittle.doctor.subject import Subject
from brittle.model.classifier import Classifier
from brittle.scores import Score

PASSED, SKIPPED = "passed", "skipped"
"""What the record of a run says of the examination."""


@dataclass(frozen=True)
class Diagnosis:
    """What looking at the first points showed.

    Attributes:
        classes: number of classes `C`.
        input_shape: shape of one input.
        taken: what of the model's output are the class scores, as `Classifier.taken`.
        findings: what a user should know.
        examined: `passed`, or `skipped` where the checks were left out.
        digest: of the first points, to tell at the end whether the data are still the same.
        forward_passes: rows that the checks sent forward through the model.
        backward_passes: rows that they sent backward.
        reference: the first points with the logits of the first pass.
    """

    classes: int
    input_shape: tuple[int, ...]
    taken: str | None
    findings: tuple[Finding, ...]
    examined: str = PASSED
    digest: str = ""
    forward_passes: int = 0
    backward_passes: int = 0
    reference: Reference | None = None


def examine(
    classifier: Classifier,
    batch: Batch,
    labels: Sequence[int] | None,
    scores: Sequence[Score],
    seed: int,
    rows: int,
    *,
    points: Points | None = None,
    skip: bool = False,
) -> Diagnosis:
    """Look at the first points of a run and at its settings.

    Args:
        classifier: what will be scored, in evaluation mode.
        batch: the first points, at least one.
        labels: all labels of the data, or None.
        scores: what will be computed.
        seed: seed of the run.
        rows: most rows in one pass through the network.
        points: all points, to read the first of them again; None looks at `batch` alone.
        skip: leave out all checks; one forward pass tells the number of classes.

    Returns:
        what was found.

    Raises:
        DataError: the values or labels do not fit the declaration, or change from one reading to the next.
        ModelError: what the model returns cannot be scored.
        ParameterError: the noise is too small for the precision of the inputs, or an integral too large.
    """
    subject = Subject(classifier, batch, labels, scores, seed, rows, points)
    looked = subject.classifier
    before = (looked.forward_passes, looked.backward_passes)
    findings = () if skip else raise_or_note(subject)
    return Diagnosis(
        classes=subject.logits.shape[1],
        input_shape=tuple(subject.inputs.shape[1:]),
        taken=looked.taken,
        findings=findings,
        examined=SKIPPED if skip else PASSED,
        digest=digest(batch),
        forward_passes=looked.forward_passes - before[0],
        backward_passes=looked.backward_passes - before[1],
        reference=subject.reference,
    )
