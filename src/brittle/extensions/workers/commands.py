"""The commands that put runs together: parts of one, later ones, and more noisy copies of undecided points."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from brittle.analysis.decisions import MORE_DRAWS
from brittle.cli.common import Quiet, Run, program, say
from brittle.errors import UsageError
from brittle.store.columns import UNDECIDED
from brittle.store.reading import open_run, read_shards
from brittle.store.writing import write

EARLIER, LATER, JOINED = ".before", ".more", ".joined"
"""Endings of the folders beside a run to which copies are added: the run before, the copies, and both together."""


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

    Points that were decided stay as they are; the others are as in a run with as many copies at most. Run it where RUN
    was scored: MODEL, DATA and options are those of its command. A command that is stopped is called again.

    Args:
        run_folder: A folder that `brittle score` wrote.
        draws: Noisy copies of a point at most; ten times those of RUN by default.
    """
    from brittle.cli.score import score
    from brittle.extensions.workers.join import join as join_runs

    earlier, later, joined = (Path(f"{run_folder}{ending}") for ending in (EARLIER, LATER, JOINED))
    if earlier.exists() and not run_folder.exists():
        earlier.rename(run_folder)
    record, _ = open_run(run_folder)
    names = {one.score: one.parameters.get("draws") for one in record.scores if one.parameters.get("limit")}
    if not names:
        raise UsageError(f"{run_folder} has no score that counts copies for a limit; score it by shrinkage first")
    if record.command is None or record.command[:2] != ("brittle", "score"):
        raise UsageError(
            f"{run_folder} was scored from Python, whose arguments are not recorded; call brittle.score again with "
            f"draws={MORE_DRAWS * max(names.values())}, which counts on for the undecided points alone"
        )
    most = MORE_DRAWS * max(names.values()) if draws is None else draws
    ids = [*dict.fromkeys(_undecided(run_folder))]
    if not ids:
        say(quiet, f"{run_folder}: every point is decided; there is nothing to draw")
        return 0
    say(quiet, f"{len(ids):,} points are undecided; drawing up to {most:,} copies of each")
    app = import_module("brittle.cli.commands").app
    _, given, _ = app.parse_args([*record.command[1:]], exit_on_error=False, print_error=False)
    given.apply_defaults()
    model, data, _, declared, reading, scoring, running, sharing, *_ = given.arguments.values()
    chosen = Path(f"{later}.ids")
    write(chosen, "".join(f"{name}\n" for name in ids).encode())
    reading = replace(reading, points=None, sample=None, ids=chosen)
    others = {one.score for one in record.scores} - names.keys()
    settings = tuple(one for one in scoring.settings if one.partition(".")[0] not in others)
    scoring = replace(scoring, scores=(*names,), draws=(most,), settings=settings)
    scoring = replace(scoring, norm=(), effort=None, pseudo_margin=None)
    running = replace(running, mirror=None, expected_accuracy=None, skip_doctor=True, resume=later.exists(), quiet=True)
    score(
        model, data, out=later, declared=declared, reading=reading, scoring=scoring, running=running,
        sharing=replace(sharing, part=None), inside=("more", str(run_folder)),
    )  # fmt: skip
    shutil.rmtree(joined, ignore_errors=True)
    join_runs(joined, [run_folder, later])
    run_folder.rename(earlier)
    joined.rename(run_folder)
    for folder in (earlier, later):
        shutil.rmtree(folder)
    chosen.unlink()
    show_run = import_module("brittle.cli.runs").show
    return 0 if quiet else show_run(run_folder)


def _undecided(run: Path) -> Iterator[str]:
    """Yield the ids of the points that a score drew for and left undecided, a shard at a time."""
    for table in read_shards(run):
        for column in table.columns:
            if column.limit is not None:
                states = column.states(column.limit)
                yield from states.index[states == UNDECIDED]
