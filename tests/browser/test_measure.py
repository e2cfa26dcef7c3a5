"""What `measure.js` says of pages whose sizes and contrasts are known."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.browser import VIEWS, Measures, View, opened
from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")

Look = Callable[..., Measures]

NARROW = View(390, 844)


@pytest.fixture(scope="module")
def measured(browser: Browser, written: Callable[[str], Path]) -> Look:
    def measure(body: str, style: str = "", view: View = NARROW) -> Measures:
        head = f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style>'
        with opened(browser, written(f"<!DOCTYPE html><title>x</title>{head}{body}"), view) as found:
            return found.measured()

    return measure


def test_texts_are_as_high_as_they_are_drawn(measured: Look) -> None:
    """One of 9 pixels; one of 20 in a drawing of 200 units on 80 pixels, so of 8; turned by 30 degrees it stays 8."""
    drawing = '<svg viewBox="0 0 200 100" width="80" height="40"><text y="50" font-size="20">%s</text></svg>'
    found = measured(
        '<p style="font-size: 9px">nine</p><p style="font-size: 10px">ten</p>'
        + drawing % "eight"
        + drawing.replace('y="50"', 'y="50" transform="rotate(30)"') % "turned"
        + (drawing % "sixteen").replace("80", "160").replace("40", "80")
        + '<p style="font-size: 4px; display: none">none</p>'
        + '<p style="font-size: 4px; position: absolute; width: 1px; height: 1px; overflow: hidden">read aloud</p>'
        + '<details><summary>more</summary><p style="font-size: 4px">folded</p></details>'
    )
    assert [one.partition(" (")[0] for one in found.small] == ["9.0 px: nine", "8.0 px: eight", "8.0 px: turned"]


def test_what_reaches_beyond_the_window_is_named(measured: Look) -> None:
    found = measured('<div class="far" style="width: 500px">x</div><div class="near">x</div>', "body { margin: 0 }")
    assert (found.width, found.room) == (500, 390)
    assert found.wide == ["html > body > div.far"]
    scrolls = measured('<div style="overflow-x: auto"><div style="width: 500px">x</div></div>')
    assert (scrolls.width, scrolls.wide) == (390, [])


MARKS = {
    '<rect width="9" height="9" fill="#949494"/>': None,  # 3.03
    '<rect width="9" height="9" fill="#969696"/>': "3.0",  # 2.96
    '<rect width="9" height="9" fill="#000" fill-opacity="0.3"/>': "2.1",  # #b2b2b2
    '<g opacity="0.5"><rect width="9" height="9" fill="#000" opacity="0.6"/></g>': "2.1",
    '<rect width="9" height="9" fill="#eee" stroke="#000"/>': None,
    '<path d="M0 0h9v9" fill="none" stroke="#bbb"/>': "1.9",
    '<circle r="9" fill="currentColor" color="#bbb"/>': "1.9",
    '<circle r="9" fill="#fff"/>': None,  # a halo
    '<g class="mark-rule role-axis-grid"><line x2="9" y2="9" stroke="#ddd"/></g>': None,
    '<g class="mark-area"><path d="M0 0h9v9" fill="#ddd"/></g>': None,
}
"""Marks on white, and the contrast of those that are too pale."""


def test_pale_marks_are_found(measured: Look) -> None:
    drawings = [f'<svg width="40" height="40" id="m{place}">{mark}</svg>' for place, mark in enumerate(MARKS)]
    found = measured("".join(drawings)).faint
    seen = {re.findall(r"svg#m(\d+)", one)[0]: one.partition(":")[0] for one in found}
    assert seen == {str(place): contrast for place, contrast in enumerate(MARKS.values()) if contrast}


def test_marks_are_seen_against_their_own_ground(measured: Look) -> None:
    mark = '<svg width="40" height="40"><rect width="9" height="9" fill="#333"/></svg>'
    found = measured(
        f'<div style="background: #000">{mark}</div><div style="background: rgb(0 0 0 / 0.1)">{mark}</div>'
    )
    assert [one.partition(":")[0] for one in found.faint] == ["1.7"]


@pytest.mark.parametrize(("view", "ground"), [("light", 1.0), ("dark", 0.0)])
def test_the_ground_of_the_night_is_seen(measured: Look, view: str, ground: float) -> None:
    style = "@media (prefers-color-scheme: dark) { body { background: #000 } }"
    assert measured("<p>x</p>", style, VIEWS[view]).ground == ground
