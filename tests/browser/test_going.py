"""How one goes about the page: by keys, by clicks and taps, and what is brought into view."""

from __future__ import annotations

import pytest
from helpers.browser import Opened
from helpers.gestures import POINTS

pytestmark = pytest.mark.xdist_group("browser")


def test_keys_alone_go_from_the_top_to_a_card_and_back(page: Opened) -> None:
    for _ in range(80):
        page.page.keyboard.press("Tab")
        if page.page.evaluate("document.activeElement.id") == "rows":
            break
    assert page.page.evaluate("document.activeElement.id") == "rows"
    names = [page.page.locator("#rows .row .name").nth(place).inner_text() for place in range(3)]
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowDown")
    assert page.page.locator("#card h3").inner_text() == names[1]
    page.page.keyboard.press("End")
    page.page.keyboard.press("ArrowDown")
    assert page.page.locator("#card .walk").inner_text().split(" of ")[0].split()[-1] == str(POINTS)
    page.page.keyboard.press("Home")
    page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == "card"
    assert page.page.locator("#card h3").inner_text() == names[0]
    page.page.keyboard.press("Escape")
    assert page.page.evaluate("document.activeElement.id") == "rows"
