"""Kill runs, damage their shards, and count losses: rows, doubled rows, unreadable files, stray files.

    PYTHONPATH=tests python -m checks.faults
    PYTHONPATH=tests python -m checks.faults some WORK SHARDS KILLS STEP ...

The first makes every kill and prints the losses. The second makes some, and prints a line of JSON: the steps of a run
and the tallies. WORK is `score`, with KILLS kills at random moments, and a STEP below zero counts from the end; or it
is `parts`, with KILLS parts of the run, two of them killed.

Every run is a child of this process, killed by SIGKILL: at random moments, and at every step of the commit protocol of
every shard. A kill that did not land is an error of the harness.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import pyarrow.pandas_compat  # noqa: F401 - here once, rather than in every child
import torch
from torch import nn

import brittle
from brittle.errors import BrittleError
from brittle.extensions.workers.join import join
from brittle.run import job as jobs
from brittle.scores import LogitMargin, Moments

POINTS_IN_A_SHARD, SHARDS, SIZE = 16, 20, 12
"""Small shards, so that a run of 20 takes a moment."""

NAMES = ("manifest.json", "run.json")


Work = Callable[[Path], None]
"""Function that writes a run to a folder."""


def score(out: Path, part: tuple[int, int] | None = None) -> None:
    """Run or resume the scoring that is killed, or a part of it."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(SIZE, 16), nn.Tanh(), nn.Linear(16, 3))
    x = torch.rand(POINTS_IN_A_SHARD * SHARDS - 5, SIZE)
    y = torch.arange(len(x)) % 3
    scores = [Moments(0.1, draws=4), LogitMargin()]
    brittle.score(brittle.Classifier(network), (x, y), scores, out=out, resume=True, part=part, skip_doctor=True)


@dataclass
class Tally:
    """Faults after kills and resumptions, and seconds of the runs on a cluster."""

    kills: int = 0
    rows_lost: int = 0
    rows_doubled: int = 0
    unreadable_files: int = 0
    stray_files: int = 0
    other_bytes: int = 0
    not_resumed: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """Return the number of faults."""
        numbers = (self.rows_lost, self.rows_doubled, self.unreadable_files, self.stray_files, self.other_bytes)
        return sum(numbers) + len(self.not_resumed)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills landed; rows lost {self.rows_lost}, rows doubled {self.rows_doubled}, unreadable "
            f"files {self.unreadable_files}, stray files {self.stray_files}, files with other bytes "
            f"{self.other_bytes}, not resumed {len(self.not_resumed)}"
        )


def in_child(work: Callable[[], object], kill_after: float | None = None) -> int:
    """Run `work` in a child of this process, kill it after `kill_after` seconds if set, and return its wait status.

    This process must have no thread that holds a lock: the child would wait for it for ever.
    """
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        jobs.SHARD = POINTS_IN_A_SHARD
        try:
            work()
        except BrittleError:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def at_every_step(do: Callable[[], None], out: Path) -> None:
    """Run with a call of `do` before and after every step of its commits: flushes and renames."""

    def with_calls(function: Callable) -> Callable:
        def call(*arguments):
            do()
            result = function(*arguments)
            do()
            return result

        return call

    os.fsync = with_calls(os.fsync)
    Path.replace = with_calls(Path.replace)  # type: ignore[method-assign]
    score(out)


def kill_at(step: int, out: Path) -> Callable[[], None]:
    """Return a run that kills itself before step `step`."""
    countdown = iter(range(step, -1, -1))

    def step_or_die() -> None:
        if next(countdown) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda: at_every_step(step_or_die, out)


def steps(folder: Path) -> int:
    """Count the steps of a complete run."""
    out, count_file = folder / "counted", folder / "steps"

    def work() -> None:
        steps_done: list[None] = []
        at_every_step(lambda: steps_done.append(None), out)
        count_file.write_text(str(len(steps_done)))

    assert in_child(work) == 0
    shutil.rmtree(out)
    return int(count_file.read_text())


def contents(run: Path) -> dict[str, str]:
    """Return the digest of every file of a run, its two JSON files without the parts that differ between runs."""
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in run.iterdir()}
    manifest = json.loads((run / "manifest.json").read_text())
    return digests | {"manifest.json": json.dumps(manifest, sort_keys=True), "run.json": ""}


def reference(folder: Path) -> dict[str, str]:
    """Return the digests of an uninterrupted run."""
    assert in_child(lambda: score(folder / "reference")) == 0
    digests = contents(folder / "reference")
    assert len(digests) == 2 * SHARDS + len(NAMES)
    return digests


def examine(run: Path, expected: dict[str, str], tally: Tally, points_expected: int | None = None) -> None:
    """Compare a resumed run of `points_expected` points with the uninterrupted one, and add differences to `tally`."""
    digests = contents(run)
    tally.stray_files += len(set(digests) - set(expected))
    tally.other_bytes += sum(digests.get(name) != digest for name, digest in expected.items())
    try:
        points = Counter(brittle.read_table(run).points["point"].to_pylist())
    except BrittleError:
        tally.unreadable_files += 1
        return
    points_expected = POINTS_IN_A_SHARD * SHARDS - 5 if points_expected is None else points_expected
    tally.rows_lost += points_expected - len(points)
    tally.rows_doubled += sum(points.values()) - len(points)


def kill_and_resume(folder: Path, runs: Iterable[tuple[str, Callable[[Path], int]]], expected: dict[str, str]) -> Tally:
    """Kill each run, check that its files can be read, resume it, and compare."""
    tally = Tally()
    for name, start in runs:
        out = folder / name
        status = start(out)
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            raise AssertionError(f"{name}: the kill did not land (wait status {status})")
        tally.kills += 1
        if (out / "run.json").exists() and (out / "manifest.json").exists():
            try:
                brittle.read_table(out)
            except BrittleError:
                tally.unreadable_files += 1
        if in_child(lambda out=out: score(out)) != 0:
            tally.not_resumed.append(name)
            continue
        examine(out, expected, tally)
        shutil.rmtree(out)
    return tally


def random_kills(folder: Path, count: int, expected: dict[str, str]) -> Tally:
    """Kill a run at random moments."""
    start = killer(folder, score, random.Random(0))
    return kill_and_resume(folder, ((f"random-{number}", start) for number in range(count)), expected)


def killer(folder: Path, scoring: Work, moments: random.Random) -> Callable[[Path], int]:
    """Return a function that starts a run, kills it at a random moment, and returns the wait status of its process."""
    began = time.monotonic()
    assert in_child(lambda: scoring(folder / "timed")) == 0
    duration = time.monotonic() - began
    shutil.rmtree(folder / "timed")

    def start_and_kill(out: Path) -> int:
        while True:  # a run may end before its moment comes
            status = in_child(lambda: scoring(out), kill_after=moments.uniform(0.02, 0.9) * duration)
            if status != 0:
                return status
            shutil.rmtree(out)

    return start_and_kill


def kill_parts(folder: Path, count: int, expected: dict[str, str]) -> Tally:
    """Run in parts, kill two of them at random moments, start these again, join all and compare with the run."""
    tally, moments = Tally(), random.Random(count)
    places = [folder / f"part-{number}" for number in range(1, count + 1)]
    chosen = moments.sample(range(1, count + 1), min(2, count))
    for number, place in enumerate(places, 1):
        scoring = partial(score, part=(number, count))
        if number in chosen:
            killer(folder, scoring, moments)(place)
            tally.kills += 1
        if in_child(partial(scoring, place)) != 0:
            tally.not_resumed.append(place.name)
    if in_child(partial(join, folder / "joined", places)) != 0:
        tally.not_resumed.append("joined")
    else:
        examine(folder / "joined", expected, tally)
    for place in (*places, folder / "joined"):
        shutil.rmtree(place, ignore_errors=True)
    return tally


def kills_at_steps(folder: Path, chosen: Iterable[int], expected: dict[str, str]) -> Tally:
    """Kill runs at steps of the commit protocol."""
    runs = ((f"step-{step}", lambda out, step=step: in_child(kill_at(step, out))) for step in chosen)
    return kill_and_resume(folder, runs, expected)


def some(work: str, shards: str, kills: str, *chosen: str) -> int:
    """Make some kills, and print a line of JSON."""
    global SHARDS
    SHARDS = int(shards)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        expected, count = reference(folder), 0 if work == "parts" else steps(folder)
        if work == "parts":
            tallies = [kill_parts(folder, int(kills), expected)]
        else:
            at = [step if step >= 0 else count + step for step in map(int, chosen)]
            tallies = [random_kills(folder, int(kills), expected), kills_at_steps(folder, at, expected)]
    print(json.dumps({"steps": count, "tallies": [asdict(tally) for tally in tallies]}))
    return int(sum(tally.faults for tally in tallies) > 0)


def main() -> int:
    """Make every kill, and print the losses."""
    import scipy.stats  # noqa: F401 - here once, rather than in every child

    torch.set_num_threads(1)
    if sys.argv[1:2] == ["some"]:
        return some(*sys.argv[2:])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        expected = reference(folder)
        count = steps(folder)
        print(f"a run of {SHARDS} shards; {count} steps of its commit protocol")
        faults = 0
        for name, tally in (
            ("random moments", random_kills(folder, 50, expected)),
            ("every step", kills_at_steps(folder, range(count), expected)),
            *((f"{parts} parts, joined", kill_parts(folder, parts, expected)) for parts in (1, 3, 8)),
        ):
            faults += tally.faults
            print(f"{name}: {tally}")
        print(f"sha256 of every joined run: {digest(expected)}")
    return int(faults > 0)


def digest(digests: dict[str, str]) -> str:
    """Return one sha256 of all files of a run, `run.json` without its times."""
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
