"""Robustness by class on the page: spread at each level of noise, and the share certified by votes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.pages import values_of
from helpers.tables import make_table

import brittle
from brittle.analysis import smoothed_radius
from brittle.extensions.report.chapters import classes
from brittle.extensions.worst_case import vote
from brittle.scores import MonteCarlo

pytestmark = pytest.mark.usefixtures("figures_drawn_once")


def test_the_spread_of_a_class_is_over_its_points_at_each_level() -> None:
    table = make_table(
        points=200, classes=4, scores=("monte_carlo",), sigmas=(0.05, 0.1, 0.2, 0.3, 0.4), budgets=(100,)
    )
    levels = values_of(classes.CHAPTER, table)["levels"].frame
    labels = table.points["label"].to_numpy()
    assert levels["level"].unique().tolist() == ["sigma 0.05", "sigma 0.1", "sigma 0.3", "sigma 0.4"]
    assert len(levels) == 4 * 4
    p_robust = table["monte_carlo", 0.3].p_robust.to_numpy()
    expected = sorted(np.nanquantile(p_robust[labels == code], [0.1, 0.5, 0.9]).tolist() for code in range(4))
    spreads = levels.loc[levels["level"] == "sigma 0.3", ["low", "value", "high"]].to_numpy().tolist()
    assert np.allclose(sorted(spreads), expected)


def test_one_level_has_no_spread_by_level() -> None:
    table = make_table(points=60, scores=("monte_carlo",), sigmas=(0.1,))
    assert values_of(classes.CHAPTER, table)["levels"].frame.empty


def test_the_share_certified_by_votes_is_counted() -> None:
    """The share of correct points with a radius above epsilon; where the noise is clipped, nothing is certified."""
    x = torch.linspace(-1, 1, 60)[:, None]
    classifier = brittle.Classifier(lambda x: torch.cat([x, -x], 1), bounds=(-1, 1))
    y = (x[:, 0] < 0).long()
    y[::7] = 1 - y[::7]
    table = brittle.score(classifier, (x, y), [MonteCarlo(0.2, draws=500, limit=None)])
    frame = values_of(vote.CHAPTER, table)["figure"].frame
    radius, correct = smoothed_radius(table).to_numpy(), np.array(table.points["correct"].to_pylist())
    for row in frame.iloc[::9].to_dict("records"):
        assert row["share"] == pytest.approx(np.mean(correct & (radius > row["epsilon"])))
        assert row["low"] <= row["share"] <= row["high"]
    clipped = brittle.score(classifier, (x, y), [MonteCarlo(0.2, draws=100, clip=True, limit=None)])
    assert vote.CHAPTER.summarize(brittle.extensions.report.render.open_contents(clipped)) is None
    failed = replace(table, scores=table.scores.slice(0, 0))
    assert vote.CHAPTER.summarize(brittle.extensions.report.render.open_contents(failed)) is None
