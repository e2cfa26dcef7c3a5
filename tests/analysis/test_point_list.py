"""Lists of points: every point once, ordered by the score's direction, and filtered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.tables import make_table, with_value
from helpers.two_runs import with_column

from brittle import Table
from brittle.analysis.columns import safety
from brittle.analysis.point_list import format_point_list, point_list
from brittle.errors import DataError, ParameterError

TABLE = make_table(
    points=60, scores=("monte_carlo", "softmax", "logit_margin", "input_margin"), broken=4, sigmas=(0.1,)
)
COLUMNS = {column.label: column for column in TABLE.columns}


@pytest.mark.parametrize("label", list(COLUMNS))
def test_every_point_is_listed_once_the_least_safe_first(label: str) -> None:
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
    valid = frame.dropna(subset=["value", "low"])
    if column.score not in ("softmax",):
        assert bool((valid["low"] <= valid["value"] + 1e-12).all())


def test_states_and_labels_filter_points() -> None:
    all_points = point_list(TABLE, limit=0.9)
    for state in ("holds", "breaks", "undecided"):
        points = point_list(TABLE, limit=0.9, state=state)
        assert points["point"].tolist() == all_points[all_points["state"] == state]["point"].tolist()
    assert point_list(TABLE, state="failed")["point"].tolist() == TABLE.points["point"].to_pylist()[:4]
    sides = [point_list(TABLE, correct=side) for side in ("right", "wrong")]  # type: ignore[arg-type]
    assert [set(side["correct"]) for side in sides] == [{True}, {False}]
    assert sum(map(len, sides)) == 56


@pytest.mark.parametrize("key", ["deer", 4, "4"])
def test_a_class_is_found_by_name_or_number(key: str | int) -> None:
    frame = point_list(TABLE, of_class=key)
    labels = TABLE.points["label"].to_pylist()
    assert len(frame) == labels.count(4)
    assert set(frame["label"]) == {4}


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (TABLE, {"of_class": "unicorn"}, "no point of the run is in class 'unicorn'; classes: airplane"),
        (TABLE, {"state": "broken"}, "state is holds, breaks, undecided or failed; found 'broken'"),
        (make_table(points=5, labels=False), {"correct": "right"}, "no point of the run has a label"),
        (make_table(points=5, scores=("logit_margin",)), {}, "the run holds no flip probability"),
    ],
)
def test_refusals(table: Table, options: dict[str, Any], message: str) -> None:
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
    frame = point_list(with_value(table, "taylor(sigma=0.1)", [1e-12, 0.4, 3e-17, None, 2e-17]))
    assert frame["row"].tolist() == [1, 0, 2, 4, 3]
    assert frame["value"].tolist()[:4] == pytest.approx([0.6, 1.0, 1.0, 1.0])


def test_ties_are_broken_by_the_next_estimator_then_by_place() -> None:
    table = make_table(points=6, scores=("moments", "monte_carlo"), sigmas=(0.1,), budgets=(200,))
    table = with_value(table, "monte_carlo(draws=200, sigma=0.1)", [0.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    table = with_value(table, "moments(draws=200, sigma=0.1)", [1e-9, 1e-3, 0.4, 1e-6, 1e-9, None])
    assert point_list(table, table["monte_carlo"])["row"].tolist() == [2, 1, 3, 0, 4, 5]


def test_wrong_points_with_the_least_probable_label_come_first() -> None:
    """Only without an ordering score: labels without a probability come last; where none has one, the least safe point
    comes first."""
    probabilities = [None, *np.random.default_rng(0).permutation(59) / 59]
    table = replace(TABLE, points=with_column(TABLE, "label_probability", probabilities))
    wrong_list = point_list(table, correct="wrong")
    wrong = [row for row in table.points.to_pylist() if row["correct"] is False]
    order = sorted(wrong, key=lambda row: (row["label_probability"] is None, row["label_probability"]))
    assert len(wrong) > 4
    assert wrong_list["point"].tolist() == [row["point"] for row in order]
    lines = format_point_list(wrong_list, table, table["monte_carlo(draws=400, sigma=0.1)"], 3).splitlines()
    assert lines[0].endswith("with the least probable label first")
    assert lines[1].split()[:3] == ["point", "label", "probability"]
    by_score = point_list(table, table["monte_carlo(draws=400, sigma=0.1)"], correct="wrong")
    unranked = replace(TABLE, points=with_column(TABLE, "label_probability", [None] * 60))
    for frame in (by_score, point_list(unranked, correct="wrong")):
        assert "label_probability" not in frame
        assert frame["value"].is_monotonic_increasing
