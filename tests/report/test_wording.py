"""Numbers and names as the page writes them."""

from __future__ import annotations

import json

import pytest

from brittle.report import wording


@pytest.mark.parametrize(
    ("number", "text"),
    [(3.2e-7, "3.2e-7"), (0.0, "0"), (0.127, "0.13"), (0.5, "0.50"), (0.00123, "0.0012"), (1.0, "1.0"), (99.4, "99")],
)
def test_short_numbers(number: float, text: str) -> None:
    assert wording.short(number) == text


@pytest.mark.parametrize(
    ("bound", "text"), [(0.0053, "0.006"), (0.0123, "0.013"), (9.3e-7, "1e-6"), (0.9999, "1"), (1.0, "1")]
)
def test_upper_bounds_are_rounded_up(bound: float, text: str) -> None:
    assert wording.at_most(bound) == text


@pytest.mark.parametrize(
    ("flip", "text"), [(0.127, "0.873"), (3.2e-7, "1 − 3.2e-7"), (0.0, "1.000"), (1.0, "0.000"), (6e-4, "0.999")]
)
def test_robustness_near_one_is_told_by_its_complement(flip: float, text: str) -> None:
    assert wording.p_robust(flip) == text


@pytest.mark.parametrize(
    ("most", "stops", "text"),
    [(1, False, "1 draw"), (2000, False, "2,000 draws"), (200, True, "at most 200 draws"), (None, False, "")],
)
def test_draws_of_points_that_stop_are_told_apart(most: int | None, stops: bool, text: str) -> None:
    assert wording.draws_text(most, stops) == text


def test_text_is_shown_escaped_and_cut() -> None:
    assert wording.show("a\nb\x00\u202e\udc80") == "a\\nb\\x00\\u202e\\udc80"
    assert wording.show("x" * 100, 10) == "x" * 9 + "…"
    assert wording.show(None) == wording.show(float("nan")) == wording.MISSING
    assert wording.show(62006) == "62,006"
    assert wording.show(True) == "True"
    assert json.loads(f'"{wording.show("é")}"') == "é"


def test_a_bound_in_per_cent_is_rounded_up() -> None:
    assert [wording.under(high) for high in (1e-30, 0.001, 0.0011, 0.0123, 0.5, 1.0)] == [
        "under 0.1%", "under 0.1%", "under 0.2%", "under 1.3%", "under 50%", "under 100%",
    ]  # fmt: skip
