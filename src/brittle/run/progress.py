"""How far a run is: a line that changes on a terminal and in a notebook, lines elsewhere, nothing when quiet.

A notebook gets it in the output of the cell; all else goes to a stream, stderr as a rule.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TextIO

from brittle.errors import ParameterError

Progress = Callable[[int, int, int], None]
"""Called with the points done, all points, and the passes through the network so far."""

SECONDS_BETWEEN_LINES, SECONDS_BETWEEN_CHANGES = 10.0, 0.2
"""At least so long from one line to the next, and from one change of a line to the next; the last is always written."""


@contextmanager
def progress(wanted: Progress | bool | None, stream: TextIO | None = None) -> Iterator[Progress | None]:
    """What to call after each batch: what the caller gave, what shows it where that is True, else None."""
    if wanted is not True:
        if wanted and not callable(wanted):
            expected = "progress must be True, or a function of the points done, all points and the passes so far"
            raise ParameterError(f"{expected}; found {wanted!r:.40}")
        yield wanted or None
        return
    to, display = stream or sys.stderr, _notebook()
    changes = display is not None or to.isatty()
    handle = None if display is None else display.display({"text/plain": ""}, raw=True, display_id=True)
    last = float("-inf") if changes else time.monotonic()
    began: tuple[float, int] | None = None  # when it was called first; a run that goes on had points before

    def advance(done: int, total: int, passes: int) -> None:
        nonlocal last, began
        now = time.monotonic()
        began = since, before = began or (now, done)
        if done != total and now - last < (SECONDS_BETWEEN_CHANGES if changes else SECONDS_BETWEEN_LINES):
            return
        last = now
        text = f"scoring: {done:,} of {total:,} points, {passes:,} passes"
        if before < done < total:
            minutes, rest = divmod(round((now - since) * (total - done) / (done - before)), 60)
            text += f", {minutes:,}:{rest:02} left"
        if handle is not None:
            handle.update({"text/plain": text}, raw=True)
        else:
            print(f"\r\x1b[K{text}" if changes else text, file=to, flush=True, end="" if changes else "\n")

    try:
        yield advance
    finally:
        if changes and handle is None:
            print(file=to, flush=True)


def _notebook() -> Any:
    """The module `IPython.display` where this process computes the cells of a notebook; None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return import_module("IPython.display") if getattr(shell, "kernel", None) is not None else None
