"""A signal is noted while Ray runs, heard once where it does no harm, and does what it did before."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.processes import hear_signals, limited, started

from brittle.cli import commands
from brittle.run.workers.signals import Signals

BOTH = [signal.SIGINT, signal.SIGTERM]

WENT_ON: list[signal.Signals] = []
"""Signals after which the block went on."""


class Heard(BaseException):
    """What this process does at a signal."""


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    WENT_ON.clear()
    kept = [signal.signal(number, hear) for number in BOTH]
    try:
        yield
    finally:
        for number, does in zip(BOTH, kept, strict=True):
            signal.signal(number, does)


def hear(number: int, frame: object) -> None:
    raise Heard(number)


@pytest.mark.parametrize("number", BOTH)
def test_it_is_heard_where_it_is_asked_for_once(number: signal.Signals) -> None:
    signals = Signals()
    with signals.record():
        signal.raise_signal(number)
        with pytest.raises(Heard) as caught:
            signals.deliver()
        signals.deliver()
    assert caught.value.args == (number,)


def noting(*numbers: signal.Signals) -> None:
    """Signals that come one after the other, each followed by something else."""
    with Signals().record():
        for number in numbers:
            signal.raise_signal(number)
            WENT_ON.append(number)


@pytest.mark.parametrize("number", BOTH)
def test_it_is_heard_at_the_end_where_nobody_asked(number: signal.Signals) -> None:
    with pytest.raises(Heard, match=str(int(number))):
        noting(number)
    assert [number] == WENT_ON


@pytest.mark.parametrize("first", BOTH)
@pytest.mark.parametrize("second", BOTH)
def test_the_second_is_heard_at_once(first: signal.Signals, second: signal.Signals) -> None:
    with pytest.raises(Heard, match=str(int(second))):
        noting(first, second)
    assert [first] == WENT_ON


def test_what_was_set_is_set_again() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Signals().record():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is hear


def leave(number: int, frame: object) -> None:
    sys.exit(number)


def starting(signals: Signals) -> None:
    """A library that takes SIGTERM for itself, as Ray does when it starts, and is told to end at once."""
    with signals.record():
        signal.signal(signal.SIGTERM, leave)
        signal.raise_signal(signal.SIGTERM)


def test_a_library_may_take_it_for_itself() -> None:
    """What it does then is heard as the signal; another exit is left alone."""
    with pytest.raises(Heard):
        starting(Signals())
    with pytest.raises(SystemExit), Signals().record():
        sys.exit(3)


def test_no_exit_is_swallowed() -> None:
    """Even where this process ignores the signal that the library ends by."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with pytest.raises(SystemExit):
        starting(Signals())
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN


def test_it_is_taken_back() -> None:
    signals = Signals()
    with signals.record():
        signal.signal(signal.SIGTERM, leave)
        signals.take()
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Heard):
            signals.deliver()


def test_another_thread_changes_nothing() -> None:
    seen: list[Any] = []

    def look() -> None:
        with Signals().record():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [hear]


@pytest.mark.parametrize("number", BOTH)
def test_tests_hear_what_their_caller_ignores(number: signal.Signals) -> None:
    """So do the processes that they start, even of a suite in the background."""
    signal.signal(number, signal.SIG_IGN)
    hear_signals()
    with started(["sleep", "60"]) as process:
        process.send_signal(number)
        assert process.wait(10) == -number


def test_a_program_in_the_background_goes_on_at_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command leaves SIGINT ignored where it found it so, and always ends by SIGTERM."""
    for number in BOTH:
        signal.signal(number, signal.SIG_IGN)
    monkeypatch.setattr(sys, "argv", ["brittle", "list"])
    with pytest.raises(SystemExit) as ended:
        commands.run()
    assert ended.value.code == 0
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is commands._terminate


def waiting() -> None:
    """What waits twice: in a block, and for a process on the way out of it."""
    with started(["sleep", "60"]) as process, limited(0.05, 0.05):
        try:
            time.sleep(60)
        finally:
            process.wait()


def test_no_test_waits_without_an_end() -> None:
    began = time.monotonic()
    with pytest.raises(pytest.fail.Exception, match=r"took longer than 0\.05 s"):
        waiting()
    assert time.monotonic() - began < 10
