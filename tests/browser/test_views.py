"""Laws of the page however it is looked at: by day, by night, on a phone, in print, and enlarged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.browser import VIEWS

pytestmark = pytest.mark.xdist_group("browser")

Look = Callable[[str], Any]

LOOKED_AT = ("light", "dark", "phone")
"""Where axe looks at the page; in the dark at its colours alone, on a phone at all but these."""

DARK = 0.05
"""Relative luminance of a page for the night, at most; by day at least 0.8."""


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_keeps_its_laws_in_every_view(look: Look, view: str) -> None:
    """Silent, asking for nothing, no wider than its window, no small text, no pale mark, on the ground that suits."""
    seen = look(view)
    assert (seen.said, seen.asked) == ([], [])
    for measures in (seen.first, seen.used):
        assert (measures.wide, measures.small, measures.faint) == ([], [], [])
        assert measures.width <= measures.room
        assert measures.ground <= DARK if view == "dark" else measures.ground >= 0.8


@pytest.mark.parametrize("view", LOOKED_AT)
def test_axe_finds_nothing(look: Look, view: str) -> None:
    assert look(view).violations == []
