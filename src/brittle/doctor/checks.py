"""The checks, in the order in which they are made, before a run and for `brittle doctor`."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from brittle.doctor import data, gradients, outputs, passes, preprocessing, settings
from brittle.doctor.subject import Finding, Subject
from brittle.errors import BrittleError

OK, NOTE, FAILED, SKIPPED = "ok", "note", "failed", "skipped"  # ends of a check


@dataclass(frozen=True)
class Check:
    """A question about a subject."""

    name: str
    run: Callable[[Subject], Iterator[Finding | str]]  # raises where the subject cannot be scored; findings, sentences
    after: tuple[str, ...] = ()  # checks that must have succeeded


@dataclass(frozen=True)
class Outcome:
    """The end of a check."""

    name: str
    state: str  # `ok`, `note`, `failed` or `skipped`
    code: str | None
    sentence: str
    passes: int = 0  # of single points
    seconds: float = 0.0


RUNS, FINITE = ("forward",), ("forward", "outputs")

CHECKS = (
    Check("same data", data.check_same_data),
    Check("forward", passes.check_forward),
    Check("range", data.check_range),
    Check("repeatable", passes.check_repeatable, RUNS),
    Check("rows apart", passes.check_rows_apart, (*RUNS, "repeatable")),
    Check("outputs", outputs.check_outputs, RUNS),
    Check("decision", outputs.check_decision, FINITE),
    Check("features", outputs.check_head, FINITE),
    Check("labels", data.check_classes, RUNS),
    Check("preprocessing", preprocessing.check_preprocessing, FINITE),
    Check("class scores", outputs.check_kind, (*FINITE, "decision")),
    Check("noise", settings.check_noise, RUNS),
    Check("gradients", gradients.check_gradients, FINITE),
    Check("certificates", settings.check_certificates, (*FINITE, "rows apart")),
    Check("history", passes.check_history, (*RUNS, "repeatable", "rows apart")),
)
"""Made before a run, where each that fails ends it."""

ACCURACY = Check("accuracy", data.check_accuracy, FINITE)

OF_THE_COMMAND = (Check("rows", data.check_rows, FINITE), ACCURACY, Check("cost", settings.check_cost, FINITE))
"""Checks that `brittle doctor` adds; a run makes the accuracy check, too, where it expects an accuracy."""


def examine(subject: Subject, *, skip: bool = False) -> None:
    """Make all checks of a run, whose findings the subject then has; `skip` leaves out all but that of the accuracy."""
    expected = () if subject.expected_accuracy is None else (ACCURACY,)
    for check in (*(() if skip else CHECKS), *expected):
        findings = [finding for finding in check.run(subject) if isinstance(finding, Finding)]
        if check is not ACCURACY:  # a run notes that of all points
            subject.findings += findings


def run_all(subject: Subject, checks: Sequence[Check] = CHECKS) -> list[Outcome]:
    """Make every one of the checks that can be made, even where others failed."""
    outcomes: list[Outcome] = []
    lost: set[str] = set()
    for check in checks:
        missing = next((name for name in check.after if name in lost), None)
        if missing is not None:
            lost.add(check.name)
            outcomes.append(Outcome(check.name, SKIPPED, None, f"needs the check {missing!r} to succeed"))
            continue
        passes, started = subject.classifier.passes, time.perf_counter()
        try:
            findings = [*check.run(subject)]
        except BrittleError as error:
            lost.add(check.name)
            ended = [Outcome(check.name, FAILED, error.code, str(error.args[0]))]
        else:
            notes = [finding for finding in findings if isinstance(finding, Finding)]
            subject.findings += notes
            sentence = "; ".join(finding for finding in findings if isinstance(finding, str))
            ended = [Outcome(check.name, NOTE, note.code, note.sentence) for note in notes]
            ended = ended or [Outcome(check.name, OK, None, sentence)]
        cost = {"passes": subject.classifier.passes - passes, "seconds": time.perf_counter() - started}
        outcomes += [replace(ended[0], **cost), *ended[1:]]
    return outcomes
