"""How far a run is: a bar on a terminal, a line that changes in a notebook, plain lines elsewhere, nothing when quiet.

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

SECONDS_BETWEEN_LINES = 10.0
"""Where there is no terminal, a line is written this often."""

SECONDS_BETWEEN_CHANGES = 0.2
"""The line of a notebook changes at most this often."""


@contextmanager
def progress(wanted: Progress | bool | None, stream: TextIO | None = None) -> Iterator[Progress | None]:
    """What to call after each batch: what the caller gave, what shows it where that is True, else None."""
    if wanted is None or wanted is False:
        yield None
    elif wanted is not True:
        if not callable(wanted):
            expected = "progress must be True, or a function of the points done, all points and the passes so far"
            raise ParameterError(f"{expected}; found {wanted!r:.40}")
        yield wanted
    elif (display := _notebook()) is not None:
        with _changing_line(display) as advance:
            yield advance
    elif (to := stream or sys.stderr).isatty():
        with _bar(to) as advance:
            yield advance
    else:
        yield _lines(to)


def _notebook() -> Any:
    """The module `IPython.display` where this process computes the cells of a notebook; None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return import_module("IPython.display") if getattr(shell, "kernel", None) is not None else None


@contextmanager
def _changing_line(display: Any) -> Iterator[Progress]:
    """One output of the cell, written over: `rich` would ask for a package of widgets, and write lines without it."""
    started, last = time.monotonic(), float("-inf")
    now = (0, 0, 0)
    handle = display.display(_bundle(*now, 0.0), raw=True, display_id=True)

    def advance(done: int, total: int, passes: int) -> None:
        nonlocal last, now
        now = (done, total, passes)
        if time.monotonic() - last >= SECONDS_BETWEEN_CHANGES:
            last = time.monotonic()
            handle.update(_bundle(*now, last - started), raw=True)

    try:
        yield advance
    finally:
        handle.update(_bundle(*now, time.monotonic() - started, over=True), raw=True)


def _bundle(done: int, total: int, passes: int, seconds: float, over: bool = False) -> dict[str, str]:
    """What a notebook shows: a sentence, and a bar before it while the run goes on."""
    if over:
        said = f"{'scored' if done == total else 'stopped at'} {done:,} of {total:,} points, {passes:,} passes"
        return {"text/plain": f"{said}, {_clock(seconds)}"}
    left = f", {_clock(seconds * (total - done) / done)} left" if done else ""
    said = f"scoring: {done:,} of {total:,} points, {passes:,} passes{left}" if total else "scoring: no point yet"
    bar = f'<progress value="{done}" max="{total or 1}" style="vertical-align:middle"></progress>'
    return {"text/plain": said, "text/html": f"<div>{bar} {said}</div>"}


def _clock(seconds: float) -> str:
    """A time in minutes and seconds, such as 1:07."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,}:{rest:02}"


@contextmanager
def _bar(stream: TextIO) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = ("scoring", BarColumn(), MofNCompleteColumn(), "points, {task.fields[passes]:,} passes,")
    with Bar(*columns, TimeRemainingColumn(), "left", console=Console(file=stream)) as bar:
        task = bar.add_task("scoring", total=None, passes=0)
        yield lambda done, total, passes: bar.update(task, completed=done, total=total, passes=passes)


def _lines(stream: TextIO) -> Progress:
    last = time.monotonic()

    def advance(done: int, total: int, passes: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"scoring: {done} of {total} points, {passes:,} passes", file=stream, flush=True)

    return advance
