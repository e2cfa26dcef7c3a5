"""Several processes of one command, one for each core."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from studies.errors import StudyError


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that processes share."""
    parser.add_argument("--jobs", type=_at_least_one, default=1, help="processes that share the work")
    parser.add_argument("--beside", action="store_true", help=argparse.SUPPRESS)  # given to all but the first


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of processes is 1 or more, found {text}")
    return int(text)


@contextmanager
def processes_beside(module: str, arguments: Sequence[str], jobs: int) -> Iterator[None]:
    """Run `python -m MODULE GIVEN --beside` in `jobs - 1` processes while the block does, and wait for them at its end.

    Where the block raises, Ctrl-C is pressed, or this process is told to end, they are stopped.

    Raises:
        StudyError: one of them failed.
    """
    started: list[subprocess.Popen[bytes]] = []
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        for _ in range(jobs - 1):
            started.append(subprocess.Popen([sys.executable, "-m", module, *arguments, "--beside", "--jobs", "1"]))
        yield
        codes = [process.wait() for process in started]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()
        signal.signal(signal.SIGTERM, before)
    if failed := [code for code in codes if code]:
        raise StudyError(
            f"a process beside this one ended with {failed[0]}, for the reason said above; start the command again: "
            f"it goes on where it stopped"
        )
