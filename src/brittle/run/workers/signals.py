"""Signals that ask a process to end, while a library runs in it that does not survive an exception in its middle."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Signals:
    """SIGINT and SIGTERM: noted where they come, and heard where no code of the library runs.

    Ray's own code, left by an exception, leaves threads and messages half done, and the process may die of that. A
    second signal is heard where it comes.
    """

    _kept: dict[int, Any] = field(default_factory=dict, init=False)
    _noted: int | None = field(default=None, init=False)

    @contextmanager
    def record(self) -> Iterator[None]:
        """Note them while the block runs; one that nobody heard by its end is heard then."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self._kept = {number: does for number, does in found.items() if does is not None}  # None: not set by Python
        self.take()
        try:
            yield
        except SystemExit as end:  # what Ray does at a SIGTERM that came before `take`
            if end.code == signal.SIGTERM and signal.SIGTERM in self._kept:
                self._noted = signal.SIGTERM
                self.deliver()
            raise
        finally:
            for number, does in self._kept.items():
                signal.signal(number, does)
            self.deliver()

    def take(self) -> None:
        """Handle them here; Ray takes SIGTERM for itself when it starts."""
        for number, does in self._kept.items():
            signal.signal(number, does if does == signal.SIG_IGN else self._note)

    def deliver(self) -> None:
        """Do what this process does at the signal that was noted, if one was."""
        if self._noted is None:
            return
        number, self._noted = self._noted, None
        signal.signal(number, self._kept[number])
        signal.raise_signal(number)

    def _note(self, number: int, frame: object) -> None:
        again = self._noted is not None
        self._noted = number
        if again:
            self.deliver()
