"""The checks, in the order in which they are made, before a run and for `brittle doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from brittle.data.points import Batch, Points
from brittle.doctor import data, gradients, outputs, passes, preprocessing, settings
from brittle.doctor.rounding import Reference
from brittle.doctor.subject import Finding, Subject
from brittle.errors import BrittleError
from brittle.model.classifier import Classifier
from brittle.scores import Score

OK, NOTE, FAILED, SKIPPED = "ok", "note", "failed", "skipped"
"""How a check may end."""

PASSED = "passed"
"""What the record of a run says where all checks were made; else `SKIPPED`."""


@dataclass(frozen=True)
class Check:
    """One question about a subject.

    Attributes:
        name: what it is called in a list.
        run: raises a `BrittleError` where the subject cannot be scored; yields findings, and what was found.
        after: names of the checks without whose success it cannot be made.
    """

    name: str
    run: Callable[[Subject], Iterator[Finding | str]]
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How one check ended.

    Attributes:
        name: the check.
        state: `ok`, `note`, `failed` or `skipped`.
        code: short name of what was found, or None.
        sentence: what was found.
    """

    name: str
    state: str
    code: str | None
    sentence: str


RUNS, SIZES, FINITE = ("forward",), ("forward", "batch sizes"), ("forward", "outputs")

CHECKS = (
    Check("weights", passes.check_weights),
    Check("range", data.check_range),
    Check("same data", data.check_same_data),
    Check("forward", passes.check_forward),
    Check("repeatable", passes.check_repeatable, RUNS),
    Check("batch sizes", passes.check_batch_sizes, (*RUNS, "repeatable")),
    Check("rows apart", passes.check_rows_apart, (*SIZES, "repeatable")),
    Check("padding", passes.check_padding, (*RUNS, "repeatable")),
    Check("outputs", outputs.check_outputs, SIZES),
    Check("decision", outputs.check_decision, FINITE),
    Check("features", outputs.check_head, FINITE),
    Check("labels", data.check_classes, RUNS),
    Check("preprocessing", preprocessing.check_preprocessing, FINITE),
    Check("class scores", outputs.check_kind, (*FINITE, "decision")),
    Check("noise", settings.check_noise, RUNS),
    Check("gradients", gradients.check_gradients, FINITE),
    Check("certificates", settings.check_certificates, FINITE),
    Check("history", passes.check_history, (*RUNS, "repeatable", "rows apart")),
)


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
    examined: str
    digest: str
    forward_passes: int
    backward_passes: int
    reference: Reference


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

    The arguments are those of `Subject`; `skip` leaves out all checks, and one pass tells the number of classes.

    Raises:
        DataError: the values or labels do not fit the declaration, or change from one reading to the next.
        ModelError: what the model returns cannot be scored.
        ParameterError: the noise is too small for the precision of the inputs, or an integral too large.
    """
    subject = Subject(classifier, batch, labels, scores, seed, rows, points)
    looked = subject.classifier
    before = (looked.forward_passes, looked.backward_passes)
    _ = subject.untouched  # before the first pass
    found = () if skip else tuple(one for check in CHECKS for one in check.run(subject) if isinstance(one, Finding))
    return Diagnosis(
        classes=subject.classes,
        input_shape=tuple(subject.inputs.shape[1:]),
        taken=looked.taken,
        findings=found,
        examined=SKIPPED if skip else PASSED,
        digest=data.digest(batch),
        forward_passes=looked.forward_passes - before[0],
        backward_passes=looked.backward_passes - before[1],
        reference=subject.reference,
    )


def run_all(subject: Subject) -> list[Outcome]:
    """Make every check that can be made, even where others failed."""
    _ = subject.untouched  # before the first pass
    outcomes: list[Outcome] = []
    lost: set[str] = set()
    for check in CHECKS:
        missing = next((name for name in check.after if name in lost), None)
        if missing is not None:
            lost.add(check.name)
            outcomes.append(Outcome(check.name, SKIPPED, None, f"needs the check {missing!r} to succeed"))
            continue
        try:
            found = [*check.run(subject)]
        except BrittleError as error:
            lost.add(check.name)
            outcomes.append(Outcome(check.name, FAILED, error.code, str(error.args[0])))
            continue
        notes = [Outcome(check.name, NOTE, each.code, each.sentence) for each in found if isinstance(each, Finding)]
        sentence = "; ".join(each for each in found if isinstance(each, str))
        outcomes += notes or [Outcome(check.name, OK, None, sentence)]
    return outcomes
