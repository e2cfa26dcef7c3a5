"""`--cpu-by room|file|law|test`: the CPU seconds of a run of tests, their processes included, the largest first."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest
from helpers import forks

COLLECTION = "collection and imports"
"""Name of the row for everything before the first test."""

LIMIT_ROWS = 80
"""Largest number of printed rows."""

TOTALS = pytest.StashKey[defaultdict[str, float]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    kinds = ("room", "file", "law", "test")
    parser.addoption("--cpu-by", choices=kinds, help="print the CPU seconds of each at the end")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[TOTALS] = defaultdict(float)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process, of those that it has waited for, and of those that it lets fork."""
    return sum(os.times()[:4]) + forks.cpu_seconds()


def row_name(item: pytest.Item, kind: str) -> str:
    """Return the room, the file, the law (a test with all its cases) or the test that the seconds are added to."""
    path, _, test = item.nodeid.partition("::")
    if kind == "room":
        folders = path.removeprefix("tests/").split("/")[:-1]
        return "/".join(folders[:2] if folders[:1] in (["extensions"], ["research"]) else folders[:1]) or "the top"
    return {"file": path, "law": f"{path}::{test.partition('[')[0]}", "test": f"{path}::{test}"}[kind]


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[TOTALS][COLLECTION] += cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    start = cpu_seconds()
    try:
        return (yield)
    finally:
        row = row_name(item, item.config.getoption("--cpu-by") or "room")
        item.config.stash[TOTALS][row] += cpu_seconds() - start


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the seconds of a worker of pytest-xdist to the process that prints them."""
    getattr(session.config, "workeroutput", {})["cpu_seconds"] = dict(session.config.stash[TOTALS])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for row, seconds in getattr(node, "workeroutput", {}).get("cpu_seconds", {}).items():
        node.config.stash[TOTALS][row] += seconds


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if kind := config.getoption("--cpu-by"):
        totals = config.stash[TOTALS]
        terminalreporter.section(f"CPU seconds by {kind}, {sum(totals.values()):.0f} in all")
        for row in sorted(totals, key=totals.__getitem__, reverse=True)[:LIMIT_ROWS]:
            terminalreporter.write_line(f"{totals[row]:8.1f}  {row}")
