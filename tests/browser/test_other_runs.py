"""Another run on the page: what changed, and what belongs to which run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.browser import Opened, opened
from helpers.gestures import ALONE, listed
from helpers.known_groups import BREAK, HOLD, OPEN, made
from helpers.pages import text_of
from playwright.sync_api import Browser

from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("report")


BEFORE = [HOLD] * 3 + [OPEN] * 3 + [BREAK] * 3
AFTER = [HOLD, OPEN, BREAK] * 3
RIGHT = [True, True, True, False, False, True, True, True, True]
RIGHT_AFTER = [True, False, False, True, False, True, True, True, True]
KNOWN = {
    "no longer holds": [1, 2],
    "now breaks": [2, 5],
    "now holds": [3, 6],
    "held, now undecided": [1],
    "held, now breaks": [2],
    "was undecided, now holds": [3],
    "was undecided, now breaks": [5],
    "broke, now holds": [6],
    "broke, now undecided": [7],
    "right, now wrong": [1, 2],
    "wrong, now right": [3],
}
"""Every change from one of three states to another, and its points."""


def renamed(table: Table, name: str) -> Table:
    """Return the same run in a folder of this name."""
    command = ("brittle", "score", "--model", "m.py", "--out", name)
    return replace(table, record=replace(table.record, command=command))


@pytest.fixture
def nine(browser: Browser, written: Callable[[str], Path]) -> Iterator[Opened]:
    before, after = made(BEFORE, RIGHT), made(AFTER, RIGHT_AFTER)
    with opened(browser, written(text_of(before, against={"B": renamed(after, "runs/b")}, chapters=ALONE))) as page:
        yield page
        assert page.messages == []


@pytest.mark.parametrize("run_on_show", ["this run", "B"])
def test_every_change_has_its_word_and_points_from_both_runs(nine: Opened, run_on_show: str) -> None:
    nine.page.locator("#run").select_option(label=run_on_show)
    assert "From this run to B" in nine.page.locator("#changes").inner_text()
    for name, points in KNOWN.items():
        button = nine.page.locator("#changes").get_by_role("button", name=f"{name}: {len(points)}", exact=True)
        button.click()
        assert sorted(int(id_) for id_ in listed(nine)) == points, name
        button.click()
