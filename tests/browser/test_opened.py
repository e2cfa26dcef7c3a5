"""What `opened` hears of a page that does everything that a report must not, and how it moves the mouse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.browser import opened
from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.parametrize(
    ("script", "said", "asked"),
    [
        ("console.warn('careful')", ["warning: careful"], []),
        ("throw new Error('lost')", ["error: lost"], []),
        ("Promise.reject(new Error('late'))", ["error: late"], []),
        ("alert(1)", [], ["dialog: 1"]),
        ("new Image().src = 'https://evil.example/x'", None, ["https://evil.example/x"]),
        ("fetch('https://evil.example/y').catch(() => 0)", None, ["https://evil.example/y"]),
        ("navigator.sendBeacon('https://evil.example/z')", None, ["https://evil.example/z"]),
        ("new Image().src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw='", [], []),
    ],
)
def test_what_a_page_does_is_heard(
    browser: Browser, written: Callable[[str], Path], script: str, said: list[str] | None, asked: list[str]
) -> None:
    """What a request that fails says on the console is the browser's own."""
    with opened(browser, written(f"<!DOCTYPE html><title>x</title><script>{script}</script>")) as found:
        for _ in range(100):
            found.page.wait_for_timeout(10)
            if len(found.asked) >= len(asked) and len(found.said) >= len(said or ()):
                break
        assert found.asked == asked
        assert said is None or found.said == said


def test_a_drag_begins_and_ends_where_it_should(browser: Browser, written: Callable[[str], Path]) -> None:
    script = """const seen = []; const box = document.querySelector("canvas");
        for (const kind of ["pointerdown", "pointermove", "pointerup"])
          box.addEventListener(kind, (event) => seen.push([kind, event.offsetX, event.offsetY, event.buttons]));"""
    page = '<!DOCTYPE html><title>x</title><div style="height: 2000px"></div><canvas width="200" height="100"></canvas>'
    with opened(browser, written(f"{page}<script>{script}</script>")) as found:
        found.drag("canvas", (0.25, 0.5), (0.75, 0.1))
        moves = [move for move in found.page.evaluate("seen") if move[3] or move[0] == "pointerup"]
    assert moves[0] == ["pointerdown", 50, 50, 1]
    assert moves[-1] == ["pointerup", 150, 10, 0]
    assert len(moves) == 6


def test_files_that_are_offered_are_named(browser: Browser, written: Callable[[str], Path]) -> None:
    link = '<a download="ids.txt" href="data:text/plain,1">Save</a>'
    with opened(browser, written(f"<!DOCTYPE html><title>x</title>{link}")) as found:
        with found.page.expect_download():
            found.page.locator("a").click()
        assert found.saved == ["ids.txt"]
