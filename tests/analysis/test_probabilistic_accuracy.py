"""Probabilistic robust accuracy: by hand, and how often its interval holds the truth of a made-up population."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from helpers.tables import make_table

from brittle.analysis import probabilistic_accuracy
from brittle.analysis.probabilistic_accuracy import _interval
from brittle.errors import DataError, ParameterError
from brittle.intervals import clopper_pearson
from brittle.store.schemas import POINTS, SCORES
from brittle.store.table import Table

LABEL = "monte_carlo(draws=100, sigma=0.1)"


def of(correct: list[bool | None], low: list[float | None], high: list[float | None]) -> Table:
    """A run whose points are right or not, with these ends of their flip probability."""
    table = make_table(points=len(low), classes=2, scores=("monte_carlo",), sigmas=(0.1,), budgets=(100,), images=False)
    points, scores = table.points, table.scores
    place = points.schema.get_field_index("correct")
    points = points.set_column(place, POINTS.field(place), pa.array(correct, pa.bool_()))
    for name, values in (("low", low), ("high", high), ("value", low)):
        place = scores.schema.get_field_index(name)
        scores = scores.set_column(place, SCORES.field(place), pa.array(values, pa.float64()))
    return replace(table, points=points, scores=scores)


def test_points_are_sorted_by_their_intervals() -> None:
    correct = [True, True, True, True, False, None, True]
    low = [0.0, 0.06, 0.04, 0.0, 0.0, 0.0, None]
    high = [0.04, 0.2, 0.06, 0.05, 0.01, 0.01, None]
    found = probabilistic_accuracy(of(correct, low, high), 0.95)
    assert (found.points, found.dropped, found.right) == (6, 1, 5)
    assert (found.holding, found.breaking, found.undecided, found.without_number) == (2, 1, 2, 1)
    assert (found.accuracy, found.lower, found.upper) == pytest.approx((5 / 6, 2 / 6, 4 / 6))
    low_end, high_end = float(clopper_pearson(2, 6, 0.99)[0]), float(clopper_pearson(4, 6, 0.99)[1])
    assert found.low == pytest.approx((low_end - 0.005) / 0.995)
    assert found.high == pytest.approx(min(1.0, high_end / 0.995))


def test_without_labels_there_is_no_accuracy() -> None:
    found = probabilistic_accuracy(of([None, None], [0.0, 0.0], [0.1, 0.1]), 0.9)
    assert (found.points, found.low, found.high) == (0, 0.0, 1.0)
    assert math.isnan(found.lower)


def test_the_interval_covers() -> None:
    """1,000 replicates at 99%, half of the points near the edge; more than 21 misses have probability below 1e-3."""
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(1000):
        flip, right = rng.choice([0.0, 0.049, 0.051, 0.2], 60, p=[0.3, 0.3, 0.3, 0.1]), rng.random(60) < 0.9
        low, high = clopper_pearson(rng.binomial(400, flip), 400, 0.99)
        ends = _interval(int((right & (high <= 0.05)).sum()), int((right & (low <= 0.05)).sum()), 60, 0.99)
        misses += not ends[0] <= 0.9 * 0.6 <= ends[1]
    assert misses <= 21


def test_what_is_no_probability_is_refused() -> None:
    table = make_table(points=5, scores=("taylor", "logit_margin"), sigmas=(0.1,), images=False)
    for rho in (0.0, -0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="above 0 and at most 1; found"):
            probabilistic_accuracy(table, rho)
    with pytest.raises(DataError, match="no probability of keeping the prediction"):
        probabilistic_accuracy(table, 0.9, table["logit_margin"])
