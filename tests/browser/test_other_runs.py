"""Another run on the page: what changed, and what belongs to which run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.browser import opened
from helpers.gestures import ALONE, chosen, ids, listed, press, run
from helpers.pages import text_of
from playwright.sync_api import Browser

from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("browser")


def test_another_run_is_switched_to_and_what_changed_is_selected(
    browser: Browser, table: Table, written: Callable[[str], Path]
) -> None:
    other = run(1)
    with opened(browser, written(text_of(table, against={"B": other}, chapters=ALONE))) as page:
        page.page.locator("#run").select_option(label="B")
        label = chosen(table)
        mine, theirs = (next(one for one in each.columns if one.label == label).states(0.9) for each in (table, other))
        for name, before, after in (("held, now breaks", "holds", "breaks"), ("broke, now holds", "breaks", "holds")):
            own = set(ids(mine, (mine == before) & (theirs.reindex(mine.index) == after)))
            press(page, name, "#changes")
            assert set(listed(page)) == own, name
            press(page, name, "#changes")
        assert page.said == []


def test_the_nearest_other_inputs_of_this_run_are_not_given_to_another(
    browser: Browser, table: Table, written: Callable[[str], Path]
) -> None:
    found = table.points["point"].to_pylist().index(table.counterexamples["point"][0].as_py())
    place = written(text_of(table, against={"B": run(1)}))
    with opened(browser, place) as page:
        page.page.goto(f"{place.as_uri()}#point={found}")
        page.page.reload()
        card = page.page.locator("#card")
        assert " there)" in card.inner_text()
        page.page.locator("#run").select_option(label="B")
        assert "Input margin" in card.inner_text()
        assert " there)" not in card.inner_text()
        assert card.locator(".pictures figure").count() <= 1
