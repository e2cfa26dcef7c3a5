"""Inputs kept by a run, feature by feature."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.tables import make_table

import brittle
from brittle.analysis.features import changed_features, feature_names, features, kept_counterexamples, kept_inputs
from brittle.analysis.point_card import format_point_card
from brittle.errors import DataError
from brittle.store.record import DataRecord

D = 24
TABLE = make_table(points=20, scores=("logit_margin", "input_margin"), norms=("l2", "linf"), features=D, broken=1)
IDS = TABLE.points["point"].to_pylist()
WITHOUT = make_table(points=20, scores=("logit_margin", "input_margin"))


def with_data(table: brittle.Table, **data: Any) -> brittle.Table:
    return replace(table, record=replace(table.record, data=replace(table.record.data, **data)))


def cells(rows: Any, **filters: Any) -> list[np.ndarray]:
    """Return the inputs of the rows with these values, by NumPy alone."""
    matching_rows = [row for row in rows.to_pylist() if all(row[key] == value for key, value in filters.items())]
    return [np.frombuffer(row["input"], "<f4").astype(np.float64) for row in matching_rows]


def test_the_inputs_of_all_points_are_an_array() -> None:
    assert np.array_equal(kept_inputs(TABLE), np.array(cells(TABLE.points)))


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_counterexamples_of_all_points_are_an_array(norm: str) -> None:
    inputs = kept_counterexamples(TABLE, ("input_margin", norm))
    assert np.isnan(inputs[0]).all()
    assert np.array_equal(inputs[1:], np.array(cells(TABLE.counterexamples, parameters=f'{{"norm":"{norm}"}}')))
    assert np.array_equal(
        kept_counterexamples(TABLE), kept_counterexamples(TABLE, ("input_margin", "l2")), equal_nan=True
    )


@pytest.mark.parametrize("place", [1, 7, 19])
def test_changes_lead_to_the_counterexample_the_largest_first(place: int) -> None:
    changes = changed_features(TABLE, IDS[place], ("input_margin", "linf"))
    (inputs,), (counterexample,) = (
        cells(TABLE.points, point=IDS[place]),
        cells(TABLE.counterexamples, point=IDS[place], parameters='{"norm":"linf"}'),
    )
    assert sorted(changes["feature"]) == sorted(f"x{number}" for number in range(D))
    numbers = [int(name[1:]) for name in changes["feature"]]
    assert np.array_equal(changes["value"], inputs[numbers])
    assert np.array_equal(changes["other"], counterexample[numbers])
    assert np.array_equal(changes["change"], (counterexample - inputs)[numbers])
    assert np.all(np.diff(np.abs(changes["change"])) <= 0)
    assert changed_features(TABLE, IDS[place], TABLE.columns[2]).equals(changes)
    assert features(TABLE, IDS[place])["value"].tolist() == inputs.tolist()


@pytest.mark.parametrize(
    ("shape", "feature_labels", "expected"),
    [
        ((3,), None, ["x0", "x1", "x2"]),
        ((), None, ["x[]"]),
        ((2, 2), None, ["x[0, 0]", "x[0, 1]", "x[1, 0]", "x[1, 1]"]),
        ((2, 1), ("age", "height"), ["age", "height"]),
        ((2,), ("age",), ["x0", "x1"]),
        ((1,), ("a\ud800",), ["a?"]),
    ],
)
def test_names_of_features(shape: tuple[int, ...], feature_labels: tuple[str, ...] | None, expected: list[str]) -> None:
    assert feature_names(DataRecord(input_shape=shape, feature_names=feature_labels)) == expected


@pytest.mark.parametrize("shape", [(3, 32, 32), (257,), None])
def test_a_run_without_inputs_is_refused(shape: tuple[int, ...] | None) -> None:
    table = with_data(WITHOUT, input_shape=shape)
    for ask in (kept_inputs, kept_counterexamples, lambda run: changed_features(run, IDS[3])):
        with pytest.raises(DataError, match="the run keeps none of its inputs") as caught:
            ask(table)
        assert caught.value.code == "no_such_point"
    assert "x0" not in format_point_card(table, IDS[3])


def test_a_point_without_a_counterexample_is_refused() -> None:
    for score, who in ((None, "any score of the run"), ("logit_margin", "logit_margin")):
        with pytest.raises(DataError, match=f"no input with another prediction was found by {who}; ") as caught:
            changed_features(TABLE, IDS[0], score)
        assert caught.value.code == "no_such_point"


def test_a_card_lists_features_and_the_largest_changes() -> None:
    text = format_point_card(with_data(TABLE, feature_names=[f"age{number}" for number in range(D)]), IDS[5])
    rows = [line.split() for line in text.splitlines()]
    inputs = cells(TABLE.points, point=IDS[5])[0]
    feature_rows = [row for row in rows if len(row) == 2 and row[0].startswith("age")]
    assert feature_rows == [[f"age{number}", f"{inputs[number]:.3g}"] for number in range(20)]
    assert "  and 4 more features" in text
    for norm in ("l2", "linf"):
        row = changed_features(TABLE, IDS[5], ("input_margin", norm)).iloc[0]
        expected_row = [f"age{row['feature'][1:]}", *(f"{row[name]:.3g}" for name in ("value", "other", "change"))]
        assert expected_row in rows
    assert text.count("and 14 more that change") == 2
