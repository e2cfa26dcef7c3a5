"""The list of checks, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from brittle.doctor import (
    certificates,
    company,
    data,
    decision,
    duplicates,
    gradients,
    labels,
    outputs,
    padding,
    parameters,
    preprocessing,
    state,
)
from brittle.doctor.finding import Finding
from brittle.doctor.subject import Subject
from brittle.errors import BrittleError

OK, NOTE, FAILED, SKIPPED = "ok", "note", "failed", "skipped"
"""How a check may end."""


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


RUNS, SIZES, FINITE = ("forward",), ("forward", "batch sizes"), ("forward", "finite")

CHECKS = (
    Check("weights", state.check_weights),
    Check("range", data.check_range),
    Check("same data", data.check_repeatable),
    Check("forward", outputs.check_forward),
    Check("state kept", state.check_state_kept, RUNS),
    Check("repeatable", state.check_repeatable, RUNS),
    Check("output kept", company.check_output_kept, RUNS),
    Check("batch sizes", company.check_batch_sizes, (*RUNS, "repeatable")),
    Check("rows apart", company.check_rows_apart, (*SIZES, "repeatable")),
    Check("history", state.check_history, (*SIZES, "repeatable")),
    Check("padding", padding.check_padding, (*RUNS, "repeatable")),
    Check("finite", outputs.check_finite, RUNS),
    Check("not constant", outputs.check_constant, (*FINITE, "batch sizes")),
    Check("decision", decision.check_decision, FINITE),
    Check("features", outputs.check_head, FINITE),
    Check("labels", labels.check_classes, RUNS),
    Check("preprocessing", preprocessing.check_preprocessing, (*FINITE, "batch sizes")),
    Check("mode", state.check_mode),
    Check("input kept", state.check_input_kept, RUNS),
    Check("precision", state.check_precision, RUNS),
    Check("class scores", outputs.check_kind, (*FINITE, "not constant", "decision")),
    Check("classes differ", duplicates.check_duplicates, (*FINITE, "not constant")),
    Check("noise", parameters.check_noise, RUNS),
    Check("cost", parameters.check_cost, RUNS),
    Check("gradients", gradients.check_gradients, (*FINITE, "not constant")),
    Check("certificates", certificates.check_certificates, FINITE),
    Check("at the end", state.check_end, (*RUNS, "repeatable", "rows apart")),
)


def raise_or_note(subject: Subject) -> tuple[Finding, ...]:
    """Make every check, in order; gives the findings, or raises what the first failing check raises."""
    _ = subject.untouched  # before the first pass
    return tuple(found for check in CHECKS for found in check.run(subject) if isinstance(found, Finding))


def run_all(subject: Subject) -> list[Outcome]:
    """Make every check that can be made, even where others failed."""
    _ = subject.untouched  # before the first pass
    outcomes: list[Outcome] = []
    lost: set[str] = set()
    for check in CHECKS:
        missing = [name for name in check.after if name in lost]
        if missing:
            lost.add(check.name)
            outcomes.append(Outcome(check.name, SKIPPED, None, f"needs the check {missing[0]!r} to succeed"))
            continue
        found: list[Finding | str] = []
        try:
            found += check.run(subject)
        except BrittleError as error:
            lost.add(check.name)
            outcomes.append(Outcome(check.name, FAILED, error.code, str(error.args[0])))
            continue
        notes = [Outcome(check.name, NOTE, each.code, each.sentence) for each in found if isinstance(each, Finding)]
        notes_on = "; ".join(each for each in found if isinstance(each, str))
        outcomes += notes or [Outcome(check.name, OK, None, notes_on)]
    return outcomes
