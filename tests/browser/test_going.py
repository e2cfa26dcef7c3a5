"""How one goes about the page: by keys, by clicks and taps, and what is brought into view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.browser import VIEWS, Opened, View, opened
from helpers.gestures import POINTS
from playwright.sync_api import Browser

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


PHONE, DESK = VIEWS["phone"], View(1280, 900)


@pytest.fixture
def phone(browser: Browser, place: Path) -> Iterator[Opened]:
    with opened(browser, place, PHONE) as found:
        yield found
        assert found.said == []


CLASS = "#overview .bars button:has-text('deer')"


def test_the_focus_stays_on_what_is_drawn_anew(page: Opened) -> None:
    """By keys alone: a class that is taken away again, the heads of the list, the next point."""
    page.page.locator(CLASS).press("Enter")
    page.page.locator(CLASS).press("Enter")
    assert page.page.evaluate("document.activeElement.innerText") == "deer"
    head = page.page.locator("#head button").first
    head.press("Enter")
    assert page.page.evaluate("document.activeElement.closest('#head') !== null")
    page.page.locator("#rows .row").first.click()
    page.page.locator("#card button[aria-label='Next point']").press("Enter")
    assert page.page.evaluate("document.activeElement.ariaLabel") == "Next point"
