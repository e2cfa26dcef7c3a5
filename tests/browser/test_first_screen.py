"""The first screen at every score and limit, compared with the analysis by pandas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.browser import opened
from helpers.gestures import ALONE, count
from helpers.known_groups import BREAK, HOLD, OPEN, counted, made
from helpers.pages import text_of
from helpers.tables import make_table
from playwright.sync_api import Browser

from brittle.analysis.overview import overview
from brittle.analysis.overview_text import how_brittle, how_sure, next_steps
from brittle.store.table import Table

pytestmark = pytest.mark.xdist_group("report")


ODD: dict[str, Callable[[], Table]] = {
    "one point": lambda: made([HOLD]),
    "no labels": lambda: made([HOLD, BREAK, OPEN], [None, None, None]),
    "all failed": lambda: made([None, None]),
    "every group": lambda: made([HOLD, BREAK, OPEN, None] * 30, [True] * 60 + [False] * 60, [*range(10)] * 12),
    "confidence alone": lambda: make_table(points=20, scores=("softmax",)),
    "too few copies": lambda: counted([20] * 4, [0, 1, 9, 20]),
    "copies as needed": lambda: counted([60, 60, 200, 200, 60], [0, 0, 0, 10, 40]),
}


@pytest.mark.parametrize("name", ODD)
def test_the_first_screen_says_what_the_analysis_says(
    browser: Browser, written: Callable[[str], Path], name: str
) -> None:
    """Compare the static text at its own limit, and at others the script's text, without commands for that limit.

    The script shares no code with the analysis.
    """
    table = ODD[name]()
    drawn = any(column.limit is not None for column in table.columns)
    with opened(browser, written(text_of(table, chapters=ALONE))) as page:
        lead = page.page.locator("#overview .lead")
        sure = page.page.locator("#overview .sure")
        assert lead.inner_text() == how_brittle(overview(table))
        if page.page.locator("#limit").is_visible():
            for limit in (0.7, 0.97, 0.999):
                page.page.locator("#limit").fill(str(limit))
                assert lead.inner_text() == how_brittle(overview(table, limit=limit))
                assert (sure.inner_text() if sure.count() else "") == how_sure(overview(table, limit=limit))
                commands = {step.text: step.command for step in next_steps(overview(table, limit=limit))}
                for step in page.page.locator("#overview .steps li:visible").all():
                    written_command = commands.get(step.locator("p").inner_text(), "detector")
                    shown = step.locator("code").inner_text()
                    assert shown == written_command or "detector" in written_command or (not shown and drawn)
                steps = [step.text for step in next_steps(overview(table, limit=limit)) if "detector" not in step.text]
                visible = page.page.locator("#overview .steps li:visible p").all_inner_texts()
                assert [text for text in visible if "detector" not in text] == [
                    text for text in steps if text in visible
                ]
        if name == "every group":
            page.page.locator("#overview .steps li", has_text="without a number").get_by_role("button").click()
            assert count(page) == 30
        assert page.messages == []


def test_without_scripts_the_first_screen_says_what_was_found(browser: Browser, report: Path) -> None:
    """Check that text of the first screen that is in the file shows without scripts, too."""
    top = "[...document.querySelectorAll('h1, h2, p, td, th')]"
    top += ".filter((one) => one.checkVisibility() && one.getBoundingClientRect().bottom < innerHeight)"
    top += ".map((one) => one.innerText)"
    with opened(browser, report, scripts=False) as page:
        still = page.page.evaluate(top)
        assert page.messages == []
    assert any("How easily do the predictions" in text for text in still)
    assert sum(len(text.split()) for text in still) > 60
