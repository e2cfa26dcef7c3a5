"""The command that examines a model, data and settings, and scores nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from brittle.cli.common import DATA, MODEL, OUTPUT, BatchSize, Config, Json, show
from brittle.cli.options import DataOptions, ModelOptions
from brittle.cli.score_options import Opening, ScoreOptions
from brittle.errors import BrittleError, UsageError
from brittle.text import as_json

if TYPE_CHECKING:
    from brittle.doctor import Outcome, Subject

EXIT_FAILED = 3  # exit code where a check failed
PAGE = "docs/reference/doctor.md"  # page that explains every code


def doctor(
    model: Annotated[str, Parameter(group=MODEL)],
    data: Annotated[Path, Parameter(group=DATA)],
    /,
    *,
    declared: ModelOptions = ModelOptions(),
    reading: DataOptions = DataOptions(),
    scoring: ScoreOptions = ScoreOptions(),
    batch_size: Annotated[BatchSize, Parameter(group=OUTPUT)] = None,
    expected_accuracy: Annotated[float | None, Parameter(group=OUTPUT)] = None,
    cost: Annotated[bool, Parameter(group=OUTPUT, negative=())] = False,
    json: Annotated[Json, Parameter(group=OUTPUT)] = False,
    config: Annotated[Config, Parameter(group=OUTPUT)] = None,
) -> int:
    """Examine MODEL, DATA and settings as `brittle score` does before it scores, and print what is known of them.

    All checks that can be made are made, even where others fail. Exits with 0 where none failed, with 3 otherwise.

    Args:
        model: As for `brittle score`.
        data: As for `brittle score`.
        expected_accuracy: Fail where the accuracy on the first 1,000 labelled points is surely below.
        cost: Print what each check took, too.
    """
    from brittle.data.labels import in_classes
    from brittle.doctor import GUARD_ROWS, Subject, varying
    from brittle.measure.forward import default_rows, hold_missing

    opening = Opening.checked(model, data, declared, reading, scoring, quiet=True)
    read = [
        _opened("data", lambda: opening.points, f"{data} is read"),
        _opened("model", lambda: opening.classifier, f"{model} is read, its weights are finite"),
    ]
    if any(outcome.state == "failed" for outcome in read):
        _print(read, json)
        return EXIT_FAILED
    points = opening.points
    classifier = opening.classifier.reading(points.provenance)
    if not classifier.decision.targets and classifier.decision.has_margins:
        points = in_classes(points, classifier.class_names, classifier.class_values, sure=classifier.names_are_sure)
    classifier = classifier.look_up(points.class_names)
    scores = opening.scores
    points = varying(points, next(iter(points.batches(1))), scores, classifier.device)
    points = hold_missing(classifier, points)
    batch = next(iter(points.batches(GUARD_ROWS)))
    rows = batch_size or default_rows(classifier, batch.inputs, batch.extra_inputs)
    subject = Subject(classifier, batch, points.labels, scores, scoring.seed, rows, points, expected_accuracy)
    if not json:
        scores = ", ".join(dict.fromkeys(score.name for score in subject.scores))
        show(f"brittle doctor: {model} on {data}, for {scores}")
    with classifier.evaluating():
        return _examine(subject, cost, json)


def _opened(name: str, opening: Callable[[], object], sentence: str) -> Outcome:
    """Return the outcome of `opening`; raise misuse of the command line."""
    from brittle.doctor import Outcome

    try:
        opening()
    except UsageError:
        raise
    except BrittleError as error:
        return Outcome(name, "failed", error.code, str(error.args[0]))
    return Outcome(name, "ok", None, sentence)


def _examine(subject: Subject, cost: bool, json: bool) -> int:
    """Make the checks and print how they ended, with `cost` also what each took; the exit code."""
    from brittle.doctor import CHECKS, OF_THE_COMMAND, run_all

    outcomes = run_all(subject, (*CHECKS, *OF_THE_COMMAND))
    _print(outcomes, json)
    failed, noted = (sum(outcome.state == state for outcome in outcomes) for state in ("failed", "note"))
    if json:
        return EXIT_FAILED if failed else 0
    print(f"\n{failed} failed, {noted} noted")
    costly = [outcome for outcome in outcomes if cost and outcome.passes]
    for outcome in costly:
        print(f"  {outcome.name:<15}{outcome.passes:>9,} passes{outcome.seconds:>9.3f} s")
    if costly:
        check_passes = sum(outcome.passes for outcome in costly if outcome.name in {check.name for check in CHECKS})
        print(f"before a run {check_passes:,} passes; its scores take about {subject.passes_of_run:,.0f}")
    return EXIT_FAILED if failed else 0


def _print(outcomes: Sequence[Outcome], json: bool) -> None:
    if json:
        show(as_json(checks=[asdict(outcome) for outcome in outcomes]))
        return
    for outcome in outcomes:
        link = f" [{PAGE}#{outcome.code}]" if outcome.code else ""
        code = f"{outcome.code}: " if outcome.code else ""
        show(f"  {outcome.state:<8}{outcome.name:<15}{code}{outcome.sentence}{link}")
