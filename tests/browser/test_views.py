"""Laws of the page however it is looked at: by day, by night, on a phone, in print, and enlarged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.browser import VIEWS, Measures

pytestmark = pytest.mark.xdist_group("browser")

Look = Callable[[str], Any]

LOOKED_AT = ("light", "dark", "phone")
"""Where axe looks at the page; in the dark at its colours alone, on a phone at all but these."""

DARK = 0.05
"""Relative luminance of a page for the night, at most; by day at least 0.8."""


def in_turn(look: Look, view: str) -> tuple[Measures, Measures]:
    """What the page looks like at first, and with a point open."""
    seen = look(view)
    return seen.first, seen.used


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_said_on_the_console(look: Look, view: str) -> None:
    assert look(view).said == []


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_asked_for_but_the_file(look: Look, view: str) -> None:
    assert look(view).asked == []


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_is_no_wider_than_its_window(look: Look, view: str) -> None:
    for measures in in_turn(look, view):
        assert measures.wide == []
        assert measures.width <= measures.room


@pytest.mark.parametrize("view", VIEWS)
def test_no_text_is_smaller_than_ten_pixels(look: Look, view: str) -> None:
    for measures in in_turn(look, view):
        assert measures.small == []


@pytest.mark.parametrize("view", VIEWS)
def test_graphics_stand_out_from_the_ground(look: Look, view: str) -> None:
    for measures in in_turn(look, view):
        assert measures.faint == []


@pytest.mark.parametrize("view", VIEWS)
def test_the_ground_is_what_the_person_prefers(look: Look, view: str) -> None:
    for measures in in_turn(look, view):
        assert measures.ground <= DARK if view == "dark" else measures.ground >= 0.8


@pytest.mark.parametrize("view", LOOKED_AT)
def test_axe_finds_nothing(look: Look, view: str) -> None:
    assert look(view).violations == []
