"""How robustness is distributed."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tables import make_table, with_value

from brittle.analysis import distribution, histogram


def test_distribution_by_hand() -> None:
    table = make_table(points=10, scores=("taylor",), sigmas=(0.1,))
    flips = [0.0, 0.001, 0.009, 0.011, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0]
    table = with_value(table, "taylor(sigma=0.1)", flips)
    found = distribution(table).iloc[0]
    assert found["points"] == 10
    assert found["mean"] == pytest.approx(1.0 - np.mean(flips))
    assert found["fragile"] == pytest.approx(0.7)
    assert found["median"] == pytest.approx(0.85)
    bins = histogram(table, bins=4)
    assert bins["points"].tolist() == [1, 0, 3, 6]
    assert bins["share"].sum() == pytest.approx(1.0)
    assert bins["start"].tolist() == [0.0, 0.25, 0.5, 0.75]


def test_distribution_reads_the_largest_budget_of_each_estimator() -> None:
    found = distribution(make_table(scores=("moments", "softmax"), sigmas=(0.2, 0.1), budgets=(10, 400, 50)))
    assert found["budget"].dropna().tolist() == [400, 400]
    assert found["sigma"].dropna().tolist() == [0.1, 0.2]
    assert len(histogram(make_table(points=2, broken=2))) == 0


def test_columns_of_the_histogram_are_of_one_type_with_and_without_budgets() -> None:
    sampled, exact = make_table(scores=("monte_carlo",)), make_table(scores=("moments", "softmax"))
    types = [histogram(table).dtypes.to_dict() for table in (sampled, exact, make_table())]
    assert types[0] == types[1] == types[2]
