"""The most and least robust points, in one order."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
import torch
from helpers.tables import make_table, with_value
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

import brittle
from brittle.analysis import extremes, ranked
from brittle.scores import MonteCarlo
from brittle.store.schemas import SCORES


def test_ranked_orders_by_flip_probability_however_small() -> None:
    table = make_table(points=5, scores=("taylor",), sigmas=(0.1,))
    found = ranked(with_value(table, "taylor(sigma=0.1)", [1e-12, 0.4, 3e-17, None, 2e-17]))
    assert found["row"].tolist() == [1, 0, 2, 4]
    assert found["p_robust"].tolist() == pytest.approx([0.6, 1.0, 1.0, 1.0])


def test_ties_are_broken_by_the_next_estimator_then_by_place() -> None:
    table = make_table(points=6, scores=("moments", "monte_carlo"), sigmas=(0.1,), budgets=(200,))
    table = with_value(table, "monte_carlo(draws=200, sigma=0.1)", [0.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    table = with_value(table, "moments(draws=200, sigma=0.1)", [1e-9, 1e-3, 0.4, 1e-6, 1e-9, None])
    assert ranked(table)["row"].tolist() == [2, 1, 3, 0, 4, 5]


@settings_of_hypothesis(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 4))
def test_extremes_are_the_ends_of_each_class(points: int, count: int, classes: int) -> None:
    table = make_table(points=points, classes=classes, scores=("taylor",), sigmas=(0.1,), images=False)
    found, order = extremes(table, count), ranked(table)
    assert not found.duplicated("point").any()
    for number, group in order.groupby("class"):
        of_class = found[found["class"] == number]
        least = of_class[of_class["side"] == "least"]["point"].tolist()
        most = of_class[of_class["side"] == "most"]["point"].tolist()
        assert least == group["point"].tolist()[: len(least)]
        others = group.iloc[len(least) :][::-1].sort_values("high", kind="stable")
        assert most == others["point"].tolist()[: len(most)]
        assert len(least) + len(most) == min(len(group), 2 * count)
        assert len(least) - len(most) in (0, 1)


def test_extremes_of_nothing() -> None:
    found = extremes(make_table(points=3, broken=3))
    assert found.empty
    assert {"side", "rank"} <= set(found.columns)


def test_the_most_robust_are_surely_so() -> None:
    """Ordered by the upper ends of their intervals: one that says nothing stands last, however small its value."""
    table = make_table(points=8, classes=1, scores=("taylor",), sigmas=(0.1,), images=False)
    rows = table.long()
    rows["value"] = [0.5, 0.4, 0.3, 0.2, 0.01, 0.02, 0.03, 1e-20]
    rows["high"] = [0.6, 0.5, 0.4, 0.3, 0.011, 0.05, 0.04, 0.999999]
    found = extremes(replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False)), 4)
    assert found.loc[found["side"] == "least", "row"].tolist() == [0, 1, 2, 3]
    assert found.loc[found["side"] == "most", "row"].tolist() == [4, 6, 5, 7]


def test_where_no_point_has_a_class_there_are_no_extremes() -> None:
    """A number within a tolerance is no class."""
    classifier = brittle.Classifier(torch.nn.Linear(2, 1), decision="within:0.3", bounds=None)
    found = extremes(brittle.score(classifier, torch.rand(6, 2), [MonteCarlo(sigma=0.1, draws=10)]))
    assert found.empty
    assert {"side", "rank", "p_robust"} <= set(found.columns)
