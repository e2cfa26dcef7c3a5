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
