"""Damaged and hostile files for every reader: whatever a file holds, only an error of `brittle.errors` may come out.

Valid files (`fuzz_targets.py`) are mutated (`fuzz_damage.py`: bit flips, truncation, insertion, block swaps, length
fields, hostile tokens), with the digests and checksums around them set right again in about half of the cases, so that
the damage gets past the first check. Input `i` of a target depends on the seed, the target and `i` alone. One process
reads all inputs; a parent watches it, so that a crash of a library is a finding like any other. Alone, with the minutes
shared equally by the readers:

    PYTHONPATH=tests python -m checks.fuzz --minutes 10 --seed 1
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import json
import random
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checks.fuzz_damage import Files, one_damaged
from checks.fuzz_targets import TARGETS
from helpers.forks import forked

WORK = "import sys, checks.fuzz; sys.exit(checks.fuzz.main())"
"""Program of a child that reads damaged files."""

LONGEST = 30 * 24 * 3600.0
"""Largest number of seconds of a child."""

SLOWEST = 5.0
"""Largest number of seconds for one input."""

MOST_MEMORY = 1 << 30
"""Largest number of bytes by which reading may raise the peak memory of the process."""


def write(folder: Path, files: Files) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def outcome(read: Callable[[Path], object], folder: Path) -> str | None:
    """Read a folder, and return the fault in its outcome, or None."""
    from brittle.errors import BrittleError

    before, start = peak(), time.monotonic()
    try:
        read(folder)
    except BrittleError as error:
        if "\n" in str(error):
            return f"a message of several lines: {error!r}"
    except Exception as error:  # noqa: BLE001 whatever else comes out is what is looked for
        return f"{type(error).__name__}: {str(error)[:300]}"
    duration, grown = time.monotonic() - start, peak() - before
    if duration > SLOWEST:
        return f"took {duration:.1f} s"
    return f"took {grown / 2**20:.0f} MiB" if grown > MOST_MEMORY else None


def peak() -> int:
    """Return the peak memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def work(seed: int, seconds: float | None, state: Path) -> None:
    """Read the inputs of the suite, or inputs for a time.

    Every line of `state` is a JSON object; the last one is the current task.
    """
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place, state.open("a") as log:

        def tell(**facts: Any) -> None:
            log.write(json.dumps(facts) + "\n")
            log.flush()

        for name, target in TARGETS.items():
            valid = target.valid()
            stop = time.monotonic() + (seconds or 0.0) / len(TARGETS)
            for number in itertools.count():
                if number >= target.inputs if seconds is None else time.monotonic() >= stop:
                    tell(target=name, inputs=number)
                    break
                rng = random.Random(f"{seed}/{name}/{number}")
                write(Path(place), one_damaged(rng, rng.choice(valid)))
                tell(target=name, number=number)
                faulthandler.dump_traceback_later(2 * SLOWEST, exit=True)
                fault = outcome(target.read, Path(place))
                faulthandler.cancel_dump_traceback_later()
                if fault is not None:
                    tell(target=name, number=number, fault=fault)
        tell(finished=True)


def hunt(seed: int, seconds: float | None = None) -> tuple[dict[str, int], list[str]]:
    """Read the inputs of the suite, or inputs for a time, and return their number by target and the findings."""
    with tempfile.TemporaryDirectory() as place:
        state = Path(place) / "state"
        task = {"seed": seed, "seconds": seconds}
        done = forked(WORK, "--work", json.dumps(task), "--state", str(state), timeout=LONGEST)
        lines = [json.loads(line) for line in state.read_text().splitlines()] if state.exists() else []
    counts = {line["target"]: line["inputs"] for line in lines if "inputs" in line}
    findings = [f"{line['target']} {line['number']}: {line['fault']}" for line in lines if "fault" in line]
    if not (lines and lines[-1].get("finished")):
        findings.append(f"{lines[-1:]}: died with {done.returncode}: {done.stderr[-2000:]}")
    return counts, findings


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--minutes", type=float, default=5.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options.add_argument("--state", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.work:
        work(**arguments.work, state=arguments.state)
        return 0
    counts, findings = hunt(arguments.seed, seconds=60.0 * arguments.minutes)
    for name, count in counts.items():
        print(f"{name:>14}: {count} inputs")
    for finding in findings:
        print(f"FOUND (seed {arguments.seed}) {finding}")
    print(f"{sum(counts.values())} inputs, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
