"""Progress of a run: a line that changes on a terminal and in a notebook, lines elsewhere, nothing when quiet.

A notebook gets it in the output of the cell; all else goes to a stream, stderr as a rule.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TextIO

from brittle.errors import ParameterError
from brittle.text import duration

Progress = Callable[[int, int, int], None]  # called with the points done, all points, and the passes so far

SECONDS_BETWEEN_LINES, SECONDS_BETWEEN_CHANGES = 10.0, 0.2  # at least, between lines and between changes of a line
FORECAST_FROM = 60.0  # seconds of a run from which its duration is estimated before it begins


class ProgressLine:
    """The line that says how far a run is, in a notebook (`display`, None elsewhere) or on the stream `to`."""

    def __init__(self, display: Any, to: TextIO) -> None:
        self._to, self._changes = to, display is not None or to.isatty()
        self._handle = display and display.display({"text/plain": ""}, raw=True, display_id=True)
        self._last = float("-inf") if self._changes else time.monotonic()
        self._began: tuple[float, int] | None = None  # when it was called first; a run that goes on had points before

    def begin(self, points: int, seconds: float, reading: float) -> None:
        """Say how long the network and the reading take for so many points, where that is `FORECAST_FROM` or more."""
        if FORECAST_FROM <= seconds + reading < math.inf:
            parts = f"the network takes about {duration(seconds)}, reading them {duration(reading)}"
            self._write(f"scoring: {points:,} points; {parts}", "\n")

    def __call__(self, done: int, total: int, passes: int) -> None:
        now = time.monotonic()
        self._began = since, before = self._began or (now, done)
        if done != total and now - self._last < (SECONDS_BETWEEN_CHANGES if self._changes else SECONDS_BETWEEN_LINES):
            return
        self._last = now
        text = f"scoring: {done:,} of {total:,} points, {passes:,} passes"
        if before < done < total:
            minutes, seconds = divmod(round((now - since) * (total - done) / (done - before)), 60)
            text += f", {minutes:,}:{seconds:02} left"
        self._write(text, "" if self._changes else "\n")

    def end(self) -> None:
        if self._changes and self._handle is None:
            print(file=self._to, flush=True)

    def _write(self, text: str, end: str) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": text}, raw=True)
        else:
            print(f"\r\x1b[K{text}" if self._changes else text, file=self._to, flush=True, end=end)


@contextmanager
def progress(option: Progress | bool | None, stream: TextIO | None = None) -> Iterator[Progress | None]:
    """Yield the callback of batches: the caller's function, a `ProgressLine` where `option` is True, else None."""
    if option is not True:
        if option and not callable(option):
            expected = "progress must be True, or a function of the points done, all points and the passes so far"
            raise ParameterError(f"{expected}; found {option!r:.40}")
        yield option or None
        return
    shown = ProgressLine(_notebook(), stream or sys.stderr)
    try:
        yield shown
    finally:
        shown.end()


def _notebook() -> Any:
    """Return the module `IPython.display` where this process computes the cells of a notebook; None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return import_module("IPython.display") if getattr(shell, "kernel", None) is not None else None
