"""Processes that tests start, and limits to every wait."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from helpers.forks import LIMIT, forked

AGAIN = 5.0
"""Seconds until the clean-up of a test is interrupted as well."""


def hear_signals() -> None:
    """Restore the default effect of SIGINT and SIGTERM, which the starter of the tests may ignore.

    A background job of a script and `nohup` ignore SIGINT, and so does every process that they start: a process that a
    test stops by it would go on for ever.
    """
    for number, does in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, does)


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process that ends with the block, however the block ends."""
    process = subprocess.Popen(command, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@contextmanager
def limited(seconds: float, again: float = AGAIN) -> Iterator[None]:
    """Fail a test that takes longer than this, and what it waits for in its clean-up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        pytest.fail(f"took longer than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


SOME_KILLS = "import sys, checks.faults; sys.exit(checks.faults.main())"


def some_kills(work: str, shards: int, kills: int, *steps: int) -> tuple[int, list[dict[str, Any]]]:
    """Return the steps of a run, and the tallies of `checks.faults some` after random kills and those at these steps.

    It runs in a new process: one that forks must have no other threads, and a process of tests has.
    """
    done = forked(SOME_KILLS, "some", work, *map(str, (shards, kills, *steps)))
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    return report["steps"], report["tallies"]
