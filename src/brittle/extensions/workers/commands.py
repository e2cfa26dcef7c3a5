"""The commands that put runs together: parts of one, later ones, and more noisy copies of undecided points."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Set
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from brittle.cli.common import Quiet, Run, program, say
from brittle.errors import UsageError

if TYPE_CHECKING:
    from brittle.store.record import RunRecord


def join(out: Path, runs: tuple[Path, ...], /, *, quiet: Quiet = False) -> int:
    """Put parts of a run together, or add later runs to a first one, in the new run folder OUT.

    Args:
        out: Folder for the whole run; it must not hold one yet.
        runs: All parts of a run, made by --part, in any order; or a run and later ones over its points; of numbers of
            the same point and score the one with most passes stays.
    """
    from brittle.extensions.workers.join import join as join_runs

    record = join_runs(out, runs)
    account, where = record.account, shlex.quote(str(out))
    again = f"{program()} show {where}, {program()} report {where}"
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
    import pandas as pd

    from brittle.analysis.decisions import MORE_DRAWS
    from brittle.cli.score import open_job
    from brittle.extensions.workers.join import check_finished
    from brittle.extensions.workers.join import join as join_runs
    from brittle.run import execute
    from brittle.run.progress import progress
    from brittle.store.export import cell
    from brittle.store.folder import RunFolder
    from brittle.store.reading import open_run
    from brittle.store.writing import make_folder, write

    run = run_folder.resolve()
    work = run.with_name(f".{run.name}.more")
    later, joined, before = (work / name for name in ("later", "joined", "before"))
    if before.exists() and run.exists():  # stopped after the two renames below
        _clear(work, run)
        return 0 if quiet else import_module("brittle.cli.runs").show(run_folder)
    if before.exists():  # stopped between them
        before.rename(run)
    record, _ = open_run(run)
    check_finished(run_folder, record)
    if record.part is not None:
        raise UsageError(f"{run_folder} is part of a run; join the parts first")
    most, names = _counts(run_folder, record)
    draws = MORE_DRAWS * most if draws is None else draws
    if draws <= most:
        raise UsageError(f"{run_folder} has up to {most:,} copies of a point; give --draws a larger number than that")
    if record.command is None or record.command[:2] != ("brittle", "score"):
        raise UsageError(
            f"{run_folder} was scored from Python, whose arguments are not recorded; call brittle.score again with "
            f"draws={draws}, which draws more for its undecided points alone"
        )
    ids = [*dict.fromkeys(_open(run, draws))]
    if not ids:
        say(quiet, f"{run_folder}: every point is decided; there is nothing to draw")
        return 0
    say(quiet, f"drawing up to {draws:,} copies of each of {len(ids):,} points")
    make_folder(work)
    write(work / "ids.csv", pd.DataFrame({"point": map(cell, ids)}).to_csv(index=False).encode())
    app = import_module("brittle.cli.commands").app
    _, given, _ = app.parse_args([*record.command[1:]], exit_on_error=False, print_error=False)
    given.apply_defaults()
    model, data, _, declared, reading, scoring, running, sharing, *_ = given.arguments.values()
    reading = replace(reading, points=None, sample=None, ids=work / "ids.csv")
    others = {one.score for one in record.scores} - names
    places = ((one, *one.partition("=")[0].split(".")) for one in scoring.settings)
    settings = tuple(one for one, name, field in places if name not in others and field != "draws")
    scoring = replace(scoring, scores=(*names,), draws=(draws,), settings=settings)
    scoring = replace(scoring, norm=(), effort=None, pseudo_margin=None)
    opening = partial(open_job, model, data, declared, reading, scoring, replace(running, quiet=True))
    with progress(not quiet) as advance:
        workers = sharing.processes(opening, declared.device)
        words = ("brittle", "more", str(run_folder))
        execute(opening(), RunFolder(later), progress=advance, command=words, skip_doctor=True, workers=workers)
    shutil.rmtree(joined, ignore_errors=True)
    join_runs(joined, [run, later])
    run.rename(before)
    joined.rename(run)
    _clear(work, run)
    return 0 if quiet else import_module("brittle.cli.runs").show(run_folder)


def _clear(work: Path, run: Path) -> None:
    """Give `run` what else lay in the folder before, such as a report, and remove `work`, that folder last."""
    for path in (work / "before").iterdir():
        if not (run / path.name).exists():
            path.rename(run / path.name)
    shutil.rmtree(work / "later", ignore_errors=True)
    (work / "ids.csv").unlink(missing_ok=True)
    shutil.rmtree(work)


def _counts(folder: Path, record: RunRecord) -> tuple[int, Set[str]]:
    """Return the most copies of a point, and the names of the scores of brittle that count them for a limit."""
    from brittle.scores import CATALOGUE

    counts = [one for one in record.scores if "limit" in one.parameters and one.score in CATALOGUE]
    most = max((draws for one in counts if isinstance(draws := one.parameters["draws"], int)), default=0)
    if not most:
        raise UsageError(f"{folder} has no score that counts copies for a limit; score it by shrinkage")
    return most, {one.score for one in counts}


def _open(run: Path, draws: int) -> Iterator[str]:
    """Yield the ids of the points that a score drew for and left undecided, a shard at a time; and of those that had
    all its draws, where a run of so many `draws` has no look at these."""
    from brittle.measure.stopping import looks
    from brittle.store.columns import UNDECIDED
    from brittle.store.reading import read_shards

    for table in read_shards(run):
        for column in table.columns:
            if column.limit is not None:
                most = column.most_draws or 0
                all_drawn = column.value.notna() & (column.passes > most) & (most not in looks(draws))
                further = (column.states(column.limit) == UNDECIDED) | all_drawn
                yield from (str(name) for name, more in further.items() if more)
