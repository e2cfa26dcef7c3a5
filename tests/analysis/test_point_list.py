"""Points in an order: every one once, by the score's own direction, and only those that were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.tables import make_table, with_rows, with_value
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from brittle import Table
from brittle.analysis import extremes
from brittle.analysis.columns import safety
from brittle.analysis.point_list import format_point_list, point_list
from brittle.errors import DataError, ParameterError

TABLE = make_table(
    points=60, scores=("monte_carlo", "softmax", "logit_margin", "input_margin"), broken=4, sigmas=(0.1,)
)
COLUMNS = {column.label: column for column in TABLE.columns}


@pytest.mark.parametrize("label", list(COLUMNS))
def test_every_point_stands_once_the_least_safe_first(label: str) -> None:
    column = COLUMNS[label]
    frame = point_list(TABLE, column)
    assert sorted(frame["point"]) == sorted(TABLE.points["point"].to_pylist())
    order = safety(column)
    assert order is not None
    danger = np.array([order.to_dict()[point] for point in frame["point"]])
    numbers = danger[~np.isnan(danger)]
    assert bool((np.diff(numbers) >= 0).all())
    assert np.isnan(danger[len(numbers) :]).all()
    assert sum(frame["value"].isna().tolist()) >= 4
    known = frame.dropna(subset=["value", "low"])
    if column.score not in ("softmax",):
        assert bool((known["low"] <= known["value"] + 1e-12).all())


def test_states_and_labels_choose_points() -> None:
    whole = point_list(TABLE, limit=0.9)
    for state in ("holds", "breaks", "undecided"):
        some = point_list(TABLE, limit=0.9, state=state)
        assert some["point"].tolist() == whole[whole["state"] == state]["point"].tolist()
    assert point_list(TABLE, state="failed")["point"].tolist() == TABLE.points["point"].to_pylist()[:4]
    sides = [point_list(TABLE, correct=side) for side in ("right", "wrong")]  # type: ignore[arg-type]
    assert [set(side["correct"]) for side in sides] == [{True}, {False}]
    assert sum(map(len, sides)) == 56


@pytest.mark.parametrize("asked", ["deer", 4, "4"])
def test_a_class_is_asked_for_by_name_or_number(asked: str | int) -> None:
    found = point_list(TABLE, of_class=asked)
    labels = TABLE.points["label"].to_pylist()
    assert len(found) == labels.count(4)
    assert set(found["label"]) == {4}


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (TABLE, {"of_class": "unicorn"}, "no point of the run is in class 'unicorn'; classes: airplane"),
        (TABLE, {"state": "broken"}, "state is holds, breaks, undecided or failed; found 'broken'"),
        (make_table(points=5, labels=False), {"correct": "right"}, "no point of the run has a label"),
        (make_table(points=5, scores=("logit_margin",)), {}, "the run holds no flip probability"),
    ],
)
def test_what_cannot_be_listed(table: Table, options: dict[str, Any], message: str) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        point_list(table, **options)


def test_a_terminal_shows_the_first_ones() -> None:
    column = COLUMNS["logit_margin"]
    text = format_point_list(point_list(TABLE, column), TABLE, column, 3)
    assert text.splitlines()[0] == "60 of 60 points, the least safe by logit_margin first"
    assert len(text.splitlines()) == 6
    assert text.splitlines()[-1] == "  and 57 more; --top shows them"


def test_points_are_ordered_by_flip_probability_however_small() -> None:
    table = make_table(points=5, scores=("taylor",), sigmas=(0.1,))
    found = point_list(with_value(table, "taylor(sigma=0.1)", [1e-12, 0.4, 3e-17, None, 2e-17]))
    assert found["row"].tolist() == [1, 0, 2, 4, 3]
    assert found["value"].tolist()[:4] == pytest.approx([0.6, 1.0, 1.0, 1.0])


def test_ties_are_broken_by_the_next_estimator_then_by_place() -> None:
    table = make_table(points=6, scores=("moments", "monte_carlo"), sigmas=(0.1,), budgets=(200,))
    table = with_value(table, "monte_carlo(draws=200, sigma=0.1)", [0.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    table = with_value(table, "moments(draws=200, sigma=0.1)", [1e-9, 1e-3, 0.4, 1e-6, 1e-9, None])
    assert point_list(table, table["monte_carlo"])["row"].tolist() == [2, 1, 3, 0, 4, 5]


@settings_of_hypothesis(max_examples=12, deadline=None)
@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 4))
def test_extremes_are_the_ends_of_each_class(points: int, count: int, classes: int) -> None:
    table = make_table(points=points, classes=classes, scores=("taylor",), sigmas=(0.1,), images=False)
    found, order = extremes(table, count), point_list(table).assign(**{"class": lambda one: one["label"]})
    order["flips"] = 1.0 - order["low"]
    assert not found.duplicated("point").any()
    for number, group in order.groupby("class"):
        of_class = found[found["class"] == number]
        least = of_class[of_class["side"] == "least"]["point"].tolist()
        most = of_class[of_class["side"] == "most"]["point"].tolist()
        assert least == group["point"].tolist()[: len(least)]
        others = group.iloc[len(least) :][::-1].sort_values("flips", kind="stable")
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
    found = extremes(with_rows(table, rows), 4)
    assert found.loc[found["side"] == "least", "row"].tolist() == [0, 1, 2, 3]
    assert found.loc[found["side"] == "most", "row"].tolist() == [4, 6, 5, 7]
