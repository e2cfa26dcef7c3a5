"""Laws of the page in every view: light, dark, on a phone, in print, and enlarged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.browser import VIEWS

pytestmark = pytest.mark.xdist_group("report")

Look = Callable[[str], Any]

LOOKED_AT = ("light", "dark", "phone")
"""Views that axe checks; the dark one for colours alone, the phone for all but colours."""

DARK = 0.05
"""Largest relative luminance of a dark page; a light page has at least 0.8."""


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_keeps_its_laws_in_every_view(look: Look, view: str) -> None:
    """Check that a page is silent, fetches nothing, fits its window, has no small text or pale mark, and its ground."""
    page = look(view)
    assert (page.messages, page.requests) == ([], [])
    for measures in (page.at_start, page.used):
        assert (measures.wide, measures.small, measures.faint) == ([], [], [])
        assert measures.width <= measures.room
        assert measures.ground <= DARK if view == "dark" else measures.ground >= 0.8


@pytest.mark.parametrize("view", LOOKED_AT)
def test_axe_finds_nothing(look: Look, view: str) -> None:
    assert look(view).violations == []
