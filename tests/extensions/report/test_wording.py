"""Numbers and names in the form of the page."""

from __future__ import annotations

import json

import pytest

from brittle.extensions.report import wording


@pytest.mark.parametrize(
    ("write", "numbers"),
    [
        (wording.short, {3.2e-7: "3.2e-7", 0.0: "0", 0.127: "0.13", 0.5: "0.50", 0.00123: "0.0012", 99.4: "99"}),
        (wording.small_percent, {0.0: "0.0%", 2e-5: "0.0020%", 0.12: "12%", 0.9999: "99.9%", 1.0: "100%"}),
    ],
)
def test_numbers(write: object, numbers: dict[float, str]) -> None:
    assert {number: write(number) for number in numbers} == numbers  # type: ignore[operator]


@pytest.mark.parametrize("share", [1e-300, 3e-21, 9.9e-7])
def test_a_tiny_share_is_shown_as_a_bound(share: float) -> None:
    assert wording.small_percent(share) == "less than 0.0001%"


def test_text_is_shown_escaped_and_cut() -> None:
    assert wording.show("a\nb\x00\u202e\udc80") == "a\\nb\\x00\\u202e\\udc80"
    assert wording.show("x" * 100, 10) == "x" * 9 + "…"
    assert wording.show(None) == wording.show(float("nan")) == wording.MISSING
    assert wording.show(62006) == "62,006"
    assert wording.show(True) == "True"
    assert json.loads(f'"{wording.show("é")}"') == "é"
