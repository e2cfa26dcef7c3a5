"""The commands that put runs together: parts of one, later ones, and more noisy copies of undecided points."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from brittle.cli.common import Quiet, Run, program, say
from brittle.errors import BrittleError, UsageError

if TYPE_CHECKING:
    from brittle.cli.score_options import ScoreOptions
    from brittle.store.record import RunRecord, ScoreRecord


def join(out: Path, runs: tuple[Path, ...], /, *, quiet: Quiet = False) -> int:
    """Put parts of a run together, or add later runs to a first one, in the new run folder OUT.

    Args:
        out: Folder for the whole run; it must not hold one yet.
        runs: All parts of a run, made by --part, in any order; or a run and later ones over its points; of numbers of
            the same point and score the one from most noisy copies stays.
    """
    from brittle.extensions.workers.join import join as join_runs

    record = join_runs(out, runs)
    account, target = record.account, shlex.quote(str(out))
    again = f"{program()} show {target}, {program()} report {target}"
    say(quiet, f"{account.points} points, {account.passes:,} passes; next: {again}")
    for warning in record.warnings:
        print(f"brittle: note: {warning.code}: {warning.sentence}", file=sys.stderr)
    return 0


def more(run_folder: Run, /, *, draws: int | None = None, quiet: Quiet = False) -> int:
    """Draw more noisy copies of the undecided points of RUN, and add to RUN what they show.

    Points that were decided stay as they are; the others are as in a run with as many copies at most. Call it where RUN
    was scored: MODEL, DATA and options are those of its command. If it is stopped, call it again.

    Args:
        run_folder: A folder that `brittle score` wrote.
        draws: Noisy copies of a point at most; ten times those of RUN by default.
    """
    from brittle.cli.runs import show
    from brittle.extensions.workers.join import join as join_runs
    from brittle.store.reading import open_run

    run = run_folder.resolve()
    work = run.with_name(f".{run.name}.more")
    if not _finish(run, work):
        record, _ = open_run(run)
        draws = _check_draws(run_folder, record, draws)
        ids = [*dict.fromkeys(_undecided(run))]
        if not ids:
            say(quiet, f"{run_folder}: every point is decided; there is nothing to draw")
            return 0
        say(quiet, f"drawing up to {draws:,} copies of each of {len(ids):,} points")
        try:
            _draw(run_folder, work, record, ids, draws, quiet)
            _remove(work / "joined")
            join_runs(work / "joined", [run, work / "later"])
        except BrittleError:  # other data or another model: nothing that a later call could go on with
            _remove(work)
            raise
        run.rename(work / "before")
        (work / "joined").rename(run)
        _finish(run, work)
        _say_older(run_folder, record)
    return 0 if quiet else show(run_folder)


def _say_older(folder: Path, record: RunRecord) -> None:
    from brittle.cli.score import read_arguments

    report, mirror = folder / "report.html", read_arguments((record.command or ())[1:])[6].mirror
    if report.exists():
        say(False, f"{report} is of the run before; {program()} report {shlex.quote(str(folder))} renews it")
    if mirror is not None:
        say(False, f"the mirror {mirror} holds the run before; copy {folder} there")


def _finish(run: Path, work: Path) -> bool:
    """Finish what a command left in `work` after its runs were joined; return whether the new run stands. `before`, the
    run without more copies, is there from the first of two renames on; its other files are given to the new run."""
    before = work / "before"
    if not before.exists():
        return False
    if not run.exists():  # stopped between the two: draw again, of which nothing is left to do, and join again
        before.rename(run)
        return False
    for path in before.iterdir():
        if not (run / path.name).exists():
            path.rename(run / path.name)
    _remove(work / "later")
    (work / "ids.csv").unlink(missing_ok=True)
    shutil.rmtree(work)
    return True


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


def _check_draws(folder: Path, record: RunRecord, draws: int | None) -> int:
    """Return `draws`, or where it is None its default; raise where the run has not finished or cannot have so many."""
    from brittle.analysis.decisions import MORE_DRAWS
    from brittle.extensions.workers.join import check_finished

    check_finished(folder, record)
    if record.part is not None:
        raise UsageError(f"{folder} is part of a run; join the parts first")
    budgets = (score.parameters["draws"] for score in _counts(record))
    largest = max((budget for budget in budgets if isinstance(budget, int)), default=0)
    if not largest:
        raise UsageError(f"{folder} counted copies for no limit, so no point is open; score it with --limit 0.9")
    draws = MORE_DRAWS * largest if draws is None else draws
    if draws <= largest:
        raise UsageError(f"{folder} has up to {largest:,} copies of a point; give --draws a larger number than that")
    if record.command is None or record.command[:2] != ("brittle", "score"):
        raise UsageError(
            f"{folder} was scored from Python, whose arguments are not recorded; call brittle.score again with "
            f"draws={draws}, which draws more for its undecided points alone"
        )
    return draws


def _counts(record: RunRecord) -> list[ScoreRecord]:
    """Return the scores of brittle that count copies for a limit."""
    from brittle.scores.catalogue import CATALOGUE

    return [score for score in record.scores if "limit" in score.parameters and score.score in CATALOGUE]


def _undecided(run: Path) -> Iterator[str]:
    """Yield the ids of the points that a score drew for and left undecided, a shard at a time."""
    from brittle.store.columns import UNDECIDED
    from brittle.store.reading import read_shards

    for table in read_shards(run):
        for column in table.columns:
            if column.limit is not None:
                yield from (str(name) for name, state in column.states(column.limit).items() if state == UNDECIDED)


def _draw(folder: Path, work: Path, record: RunRecord, ids: Sequence[str], draws: int, quiet: bool) -> None:
    """Write the run `later` in `work`: that of the command of `record`, with so many `draws` of the points `ids`."""
    import pandas as pd

    from brittle.cli.score import open_job, read_arguments
    from brittle.run import execute
    from brittle.run.progress import progress
    from brittle.run.record import describe
    from brittle.store.export import cell
    from brittle.store.folder import RunFolder
    from brittle.store.writing import make_folder, write

    make_folder(work)
    write(work / "ids.csv", pd.DataFrame({"point": map(cell, ids)}).to_csv(index=False).encode())
    model, data, _, declared, reading, scoring, running, sharing, *_ = read_arguments((record.command or ())[1:])
    reading = replace(reading, points=None, sample=None, ids=work / "ids.csv")
    scoring, running = _counting(scoring, record, draws), replace(running, quiet=True)
    opening = partial(open_job, model, data, declared, reading, scoring, running)
    job, later = opening(), RunFolder(work / "later")
    if later.record is not None and later.record.scores != describe(job).scores:  # a call that was stopped drew fewer
        _remove(later.path)
    with progress(not quiet) as line:
        advance = None if line is None else partial(line)  # no forecast, which is for points of all kinds
        workers, words = sharing.processes(opening, declared.device), ("brittle", "more", str(folder))
        execute(job, later, progress=advance, command=words, skip_doctor=True, workers=workers)


def _counting(scoring: ScoreOptions, record: RunRecord, draws: int) -> ScoreOptions:
    """Return the options of the scores that count copies alone, with so many `draws`."""
    names = dict.fromkeys(score.score for score in _counts(record))
    left_out = {score.score for score in record.scores} - names.keys()
    settings = []
    for setting in scoring.settings:
        name, _, field = setting.partition("=")[0].partition(".")
        settings += [setting] if name not in left_out and field != "draws" else []
    return replace(
        scoring, scores=(*names,), draws=(draws,), settings=(*settings,), norm=(), effort=None, pseudo_margin=None
    )
