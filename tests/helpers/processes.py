"""Processes that tests start, and an end to every wait."""

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
"""Seconds until what a test does on its way out is interrupted as well."""


def hear_signals() -> None:
    """SIGINT and SIGTERM do again what they do by default, where whoever started the tests ignores them.

    A background job of a script and `nohup` ignore SIGINT, and so does every process that they start: what is to be
    stopped by it would go on for ever.
    """
    for number, does in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, does)


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone when the block is left, however it is left."""
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
    """A test that takes longer than this fails, and so does what it waits for on its way out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        pytest.fail(f"took longer than {seconds:g} s")

    kept = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, kept)


SOME_KILLS = "import sys, checks.faults; sys.exit(checks.faults.main())"


def some_kills(work: str, shards: int, kills: int, *steps: int) -> tuple[int, list[dict[str, Any]]]:
    """The steps of a run, and what `checks.faults some` saw after so many random kills and those at these steps.

    In a process of its own: what forks must have no other threads, and a process of tests has.
    """
    done = forked(SOME_KILLS, "some", work, *map(str, (shards, kills, *steps)))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return found["steps"], found["tallies"]
