"""Histograms of the flip probability whose bins widen with it."""

from __future__ import annotations

import pytest
from helpers.pages import page_of, result_of
from helpers.tables import make_table, with_value

from brittle.report.chapters.distribution import DistributionChapter
from brittle.report.chapters.distribution.bins import EDGES, tail_histogram

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_a_point_stands_in_the_bin_that_ends_at_or_above_it() -> None:
    table = make_table(points=7, scores=("taylor",), sigmas=(0.1,))
    (column,) = with_value(table, "taylor(sigma=0.1)", [0.0, 1e-6, 2e-6, 0.001, 0.0011, 1.0, None]).columns
    frame = tail_histogram(column, 0.9)
    points = frame.to_dict("records")
    found = [sum(row["points"] for row in points if row["place_of_bin"] == place) for place in range(len(EDGES) - 1)]
    assert found == [2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1]
    assert frame["share"].sum() == pytest.approx(1.0)


def test_the_bulk_of_sure_points_is_spread() -> None:
    """Of points with flip probabilities from 1e-9 to 0.05, one bin in twenty equal ones would hold all."""
    table = make_table(points=60, scores=("taylor",), sigmas=(0.1,))
    (column,) = with_value(table, "taylor(sigma=0.1)", [10.0 ** -(9 - 7.7 * one / 59) for one in range(60)]).columns
    rows = tail_histogram(column, 0.9).to_dict("records")
    assert max(sum(row["share"] for row in rows if row["bin"] == name) for name in {row["bin"] for row in rows}) < 0.6


def test_a_score_that_knows_no_noise_is_labelled_so_and_decides_nothing() -> None:
    table = make_table(points=30, scores=("softmax", "monte_carlo"), sigmas=(0.1,), budgets=(50,))
    result = result_of(DistributionChapter(), table)
    assert set(result.frame["estimator"]) == {"monte_carlo", "softmax: 1 − confidence, no flips"}
    own = result.frame[result.frame["estimator"].str.startswith("softmax")]
    assert own.loc[own["state"] != "undecided", "points"].sum() == 0
    assert own.loc[own["state"] == "undecided", "points"].sum() == 30
    assert "they say how sure the network is: softmax." in page_of(table, chapters=(DistributionChapter(),)).text
