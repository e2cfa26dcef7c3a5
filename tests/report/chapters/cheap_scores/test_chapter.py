"""Whether a score that knows no noise can stand in."""

from __future__ import annotations

import pytest
from helpers.pages import assert_inert, page_of, result_of
from helpers.tables import make_table, with_value

from brittle.report.chapters.cheap_scores import CheapScoresChapter

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_infinite_margins_are_left_out_of_the_drawing() -> None:
    table = make_table(points=10, scores=("moments", "first_order_margin"), sigmas=(0.1,))
    table = with_value(table, "first_order_margin", [float("inf")] * 3 + [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert len(result_of(CheapScoresChapter(), table).frame) == 7
    assert_inert(page_of(table))


def test_scores_that_are_smaller_where_safer_are_named() -> None:
    note = result_of(CheapScoresChapter(), make_table(points=30, scores=("moments", "entropy", "logit_margin"))).note
    assert "taken with the other sign: entropy." in note
    assert "other sign" not in result_of(CheapScoresChapter(), make_table(points=30)).note
