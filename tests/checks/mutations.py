"""Takes safeguards out one at a time, in a copy of the tree, and shows that a test turns red for each of them.

    PYTHONPATH=tests python -m checks.mutations [NAME ...]

A safeguard that no test misses can be lost without anybody noticing. The tests that are named here pass on a copy that
nothing was taken out of; then each must fail, and not merely break, on a copy that lacks its safeguard. What is taken
out stands in `safeguards/`, one file for each room of the house.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from checks.safeguards import (
    analysis,
    cli,
    data,
    decisions,
    detector,
    display,
    doctor,
    measure,
    measure_certified,
    measure_nearest,
    model,
    noise,
    orthant,
    report,
    run,
    scores,
    store,
    studies,
    top,
)
from checks.taken_out import PASSED, copy_tree, run_tests, survives

MUTATIONS = (
    *analysis.SAFEGUARDS,
    *cli.SAFEGUARDS,
    *data.SAFEGUARDS,
    *decisions.SAFEGUARDS,
    *detector.SAFEGUARDS,
    *display.SAFEGUARDS,
    *doctor.SAFEGUARDS,
    *measure.SAFEGUARDS,
    *measure_certified.SAFEGUARDS,
    *measure_nearest.SAFEGUARDS,
    *model.SAFEGUARDS,
    *noise.SAFEGUARDS,
    *orthant.SAFEGUARDS,
    *report.SAFEGUARDS,
    *run.SAFEGUARDS,
    *scores.SAFEGUARDS,
    *store.SAFEGUARDS,
    *studies.SAFEGUARDS,
    *top.SAFEGUARDS,
)
"""The safeguards, by the room of the house that they stand in."""


def main(arguments: Sequence[str]) -> int:
    """All of it, or the mutations that are named; prints a table."""
    parser = argparse.ArgumentParser(
        prog="python -m checks.mutations", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a safeguard; without one, all are taken out")
    parser.add_argument("--file", default="", help="only safeguards whose file or test holds this text")
    parser.add_argument("--list", action="store_true", help="print name, file and test of each, and run nothing")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - {one.name for one in MUTATIONS}:
        parser.error(f"no safeguard is called {', '.join(sorted(unknown))}; --list prints the names")
    chosen = [
        one
        for one in MUTATIONS
        if (not given.names or one.name in given.names) and (given.file in one.file or given.file in one.test)
    ]
    if not chosen:
        parser.error(f"no safeguard is left: none of these has {given.file!r} in its file or in its test")
    if given.list:
        print(*(f"{one.name:60}  {one.file:36}  {one.test}" for one in chosen), sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        copy_tree(place)
        for one in chosen:
            one.applied((place / one.path).read_text(encoding="utf-8"))
        began = time.monotonic()
        code, said = run_tests(place, sorted({one.test for one in chosen}))
        if code != PASSED:
            print(said, f"the tests do not pass on the tree as it is (exit code {code})", sep="\n", file=sys.stderr)
            return 2
        print(f"on the tree as it is: {said.rstrip().rpartition(chr(10))[2]}")
        alive = []
        for one in chosen:
            survived, seen = survives(place, one)
            alive += [one.name] * survived
            print(f"{'SURVIVED' if survived else 'caught':8}  {one.name:50}  {one.file:24}  {one.test:104}  {seen}")
            sys.stdout.flush()
    seconds = time.monotonic() - began
    print(
        f"{len(chosen)} safeguards taken out, {len(chosen) - len(alive)} caught, {len(alive)} survived; {seconds:.0f} s"
    )
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
