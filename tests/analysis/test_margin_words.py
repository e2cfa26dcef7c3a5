"""What is said of the nearest other predictions of a run: counted by hand, and held against the points."""

from __future__ import annotations

import re

import pytest
from helpers.calibrated import with_margins
from helpers.tables import make_table

from brittle.analysis.overview import margin_sentences, overview
from brittle.analysis.overview_text import format_overview

SAID = re.compile(r"found within ([\d.]+) of half and within ([\d.]+) of one in ten")


@pytest.mark.parametrize("points", [1, 2, 9, 10, 11, 400])
def test_at_least_that_share_is_as_near(points: int) -> None:
    """And no more than one point could be left out; a certificate never lies beyond what was found."""
    table = make_table(points=points, scores=("input_margin",), certified=True)
    (text,) = margin_sentences(table)
    (column,) = table.columns
    said = SAID.search(text)
    assert said is not None
    for words, share in ((said[1], 0.5), (said[2], 0.1)):
        distance = float(words) * 1.005  # three digits are shown
        assert (column.value <= distance).sum() >= share * points
        assert (column.value < float(words) * 0.995).sum() < share * points
    certified = re.search(r"Certified: none within ([\d.]+) of half of the points\.$", text)
    assert certified is not None
    assert (column.low >= float(certified[1]) * 0.995).sum() >= 0.5 * points
    assert float(certified[1]) <= float(said[1])


def test_what_was_not_found_is_said() -> None:
    few = make_table(points=40, scores=("input_margin",), not_found=30)
    (text,) = margin_sentences(few)
    assert "of half" not in text
    assert text.endswith(" of one in ten of the points. None was found for 30 of 40 points (75%).")
    (text,) = margin_sentences(make_table(points=40, scores=("input_margin",), not_found=40))
    assert "for fewer than one in ten points. None was found for 40 of 40 points (100%)." in text


def test_a_screen_of_margins_speaks_of_them() -> None:
    """A run of margins alone was said to know nothing."""
    table = make_table(points=30, scores=("input_margin", "logit_margin"))
    assert margin_sentences(table)[0] in format_overview(overview(table)).splitlines()
    assert margin_sentences(make_table(points=30, scores=("logit_margin",))) == ()


def test_values_that_change_are_called_so() -> None:
    bare = make_table(points=20, scores=("logit_margin",))
    (text,) = margin_sentences(with_margins(bare, [1.0] * 5 + [3.0] * 15, norm="l0"))
    assert "found within 3 changed values of half and within 1 changed value of one in ten of the points." in text
