"""Threads, signals and the longest time of a test: what must be the same wherever tests are started."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

# One thread for each process, those that tests start too, unless told: the suite runs two processes on two cores.
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS") or "1"
# What Python compiles is kept, for the hundred processes that tests start and for the next run of the suite.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import pytest
from helpers.halves import leave_every_other
from helpers.processes import hear_signals, limited

sys.dont_write_bytecode = False
# What a test writes need not outlast the machine: no disk is waited for, a dozen times in every run that is written.
os.fsync = lambda fd: None
hear_signals()

SECONDS, SECONDS_SLOW = 300, 1800
"""Longest time of a test; the slowest takes 20 s on an idle machine."""


OBJECTS = 20_000
"""New objects after which garbage is looked for."""

TOGETHER = 40
"""Tests of a file that one process does at a time."""

LONGEST = ("ray", "browser", "report", "crew", "test_docs 0", "sources", "test_fuzz 0")
"""Groups that take longest, and long ones that would come last, in the order in which they begin."""

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""What Python writes of an object that has no name of its own."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What the collection makes lives as long as the process: no search for garbage looks at it, now or later.

    Later searches are rare: at every 700th object they took a fiftieth of the suite.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(OBJECTS)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a file go to a process together, some at a time; the longest groups go first.

    So one process makes what they share, and the one that hands tests out, which counts all groups after every test,
    has few to count; and no process is left alone with a long group at the end. The processes know a test by its name,
    which must be the same in all of them.
    """
    leave_every_other(items)
    if named := next((item.nodeid for item in items if ADDRESS.search(item.nodeid)), None):
        raise pytest.UsageError(f"{named}: every process has another address here; give this case a name by `ids`")
    places: Counter[Path] = Counter()
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem} {places[item.path] // TOGETHER}"))
            places[item.path] += 1
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """The place of a test's group among the longest, or behind them."""
    marker = item.get_closest_marker("xdist_group")
    name = "" if marker is None else marker.args[0]
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def _limited(item: pytest.Item) -> Generator[None, Any, Any]:
    with limited(SECONDS_SLOW if item.get_closest_marker("slow") else SECONDS):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _limited(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _limited(item))
