"""Threads, signals and time limits of tests, the same wherever tests are started."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

# One thread for each process, those that tests start too, unless told: the suite runs three processes on two cores.
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
"""Number of new objects that starts a search for garbage."""

TOGETHER = 40
"""Number of tests of a file that one process runs at a time."""

LONGEST = ("ray", "report", "crew", "test_docs 0", "sources", "test_fuzz 0")
"""Groups that take longest, and long ones that would come last, in the order of their start."""

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""The address that Python prints for an object without a name."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Exclude the objects of the collection, which live as long as the process, from the search for garbage.

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
    """Send tests of a file to a process together, some at a time, and the longest groups first.

    So one process makes what they share; the process that distributes tests, which counts all groups after every test,
    has few to count; and no process is left alone with a long group at the end. The processes identify a test by its
    name, which must be the same in all of them.
    """
    leave_every_other(items)
    if name := next((item.nodeid for item in items if ADDRESS.search(item.nodeid)), None):
        raise pytest.UsageError(f"{name}: every process has another address here; give this case a name by `ids`")
    places: Counter[Path] = Counter()
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem} {places[item.path] // TOGETHER}"))
            places[item.path] += 1
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """Return the place of a test's group among the longest, or behind them."""
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
