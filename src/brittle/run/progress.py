"""How far a run is: a bar on a terminal, plain lines elsewhere, nothing when quiet. All of it goes to stderr."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from brittle.run import Progress

SECONDS_BETWEEN_LINES = 10.0
"""Where there is no terminal, a line is written this often."""


@contextmanager
def progress(quiet: bool, stream: TextIO) -> Iterator[Progress | None]:
    """What to call after each batch, or None when quiet."""
    if quiet:
        yield None
    elif stream.isatty():
        with _bar(stream) as advance:
            yield advance
    else:
        yield _lines(stream)


@contextmanager
def _bar(stream: TextIO) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("scoring"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("points, {task.fields[passes]:,} passes,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Bar(*columns, console=Console(file=stream)) as bar:
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
