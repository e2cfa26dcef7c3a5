"""The inputs that a run keeps, feature by feature."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.tables import make_table

import brittle
from brittle.analysis import changed_features, feature_names, features, kept_counterexamples, kept_inputs
from brittle.analysis.point_card import format_point_card
from brittle.errors import DataError
from brittle.store.record import DataRecord

D = 24
TABLE = make_table(points=20, scores=("logit_margin", "input_margin"), norms=("l2", "linf"), features=D, broken=1)
IDS = TABLE.points["point"].to_pylist()
WITHOUT = make_table(points=20, scores=("logit_margin", "input_margin"))


def named(table: brittle.Table, **data: Any) -> brittle.Table:
    return replace(table, record=replace(table.record, data=replace(table.record.data, **data)))


def cells(rows: Any, **wanted: Any) -> list[np.ndarray]:
    """The inputs of the rows with these values, by NumPy alone."""
    found = [row for row in rows.to_pylist() if all(row[key] == value for key, value in wanted.items())]
    return [np.frombuffer(row["input"], "<f4").astype(np.float64) for row in found]


def test_the_inputs_of_all_points_are_an_array() -> None:
    assert np.array_equal(kept_inputs(TABLE), np.array(cells(TABLE.points)))


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_counterexamples_of_all_points_are_an_array(norm: str) -> None:
    found = kept_counterexamples(TABLE, ("input_margin", norm))
    assert np.isnan(found[0]).all()
    assert np.array_equal(found[1:], np.array(cells(TABLE.counterexamples, parameters=f'{{"norm":"{norm}"}}')))
    assert np.array_equal(
        kept_counterexamples(TABLE), kept_counterexamples(TABLE, ("input_margin", "l2")), equal_nan=True
    )


@pytest.mark.parametrize("place", [1, 7, 19])
def test_changes_lead_from_a_point_to_what_was_found_the_largest_first(place: int) -> None:
    changed = changed_features(TABLE, IDS[place], ("input_margin", "linf"))
    (own,), (other,) = (
        cells(TABLE.points, point=IDS[place]),
        cells(TABLE.counterexamples, point=IDS[place], parameters='{"norm":"linf"}'),
    )
    assert sorted(changed["feature"]) == sorted(f"x{number}" for number in range(D))
    numbers = [int(name[1:]) for name in changed["feature"]]
    assert np.array_equal(changed["value"], own[numbers])
    assert np.array_equal(changed["other"], other[numbers])
    assert np.array_equal(changed["change"], (other - own)[numbers])
    assert np.all(np.diff(np.abs(changed["change"])) <= 0)
    assert changed_features(TABLE, IDS[place], TABLE.columns[2]).equals(changed)
    assert features(TABLE, IDS[place])["value"].tolist() == own.tolist()


@pytest.mark.parametrize(
    ("shape", "given", "expected"),
    [
        ((3,), None, ["x0", "x1", "x2"]),
        ((), None, ["x[]"]),
        ((2, 2), None, ["x[0, 0]", "x[0, 1]", "x[1, 0]", "x[1, 1]"]),
        ((2, 1), ("age", "height"), ["age", "height"]),
        ((2,), ("age",), ["x0", "x1"]),
        ((1,), ("a\ud800",), ["a?"]),
    ],
)
def test_names_of_features(shape: tuple[int, ...], given: tuple[str, ...] | None, expected: list[str]) -> None:
    assert feature_names(DataRecord(input_shape=shape, feature_names=given)) == expected


@pytest.mark.parametrize("shape", [(3, 32, 32), (257,), None])
def test_a_run_that_keeps_no_inputs_says_so(shape: tuple[int, ...] | None) -> None:
    table = named(WITHOUT, input_shape=shape)
    for ask in (kept_inputs, kept_counterexamples, lambda one: changed_features(one, IDS[3])):
        with pytest.raises(DataError, match="the run keeps none of its inputs") as caught:
            ask(table)
        assert caught.value.code == "no_such_point"
    assert "x0" not in format_point_card(table, IDS[3])


def test_a_point_without_a_counterexample_says_so() -> None:
    for score, who in ((None, "any score of the run"), ("logit_margin", "logit_margin")):
        with pytest.raises(DataError, match=f"no input with another prediction was found by {who}; ") as caught:
            changed_features(TABLE, IDS[0], score)
        assert caught.value.code == "no_such_point"


def test_a_card_lists_features_and_the_largest_changes() -> None:
    text = format_point_card(named(TABLE, feature_names=[f"age{number}" for number in range(D)]), IDS[5])
    rows = [line.split() for line in text.splitlines()]
    own = cells(TABLE.points, point=IDS[5])[0]
    listed = [row for row in rows if len(row) == 2 and row[0].startswith("age")]
    assert listed == [[f"age{number}", f"{own[number]:.3g}"] for number in range(20)]
    assert "  and 4 more features" in text
    first, second = (changed_features(TABLE, IDS[5], ("input_margin", norm)).iloc[0] for norm in ("l2", "linf"))
    for row in (first, second):
        said = [f"age{row['feature'][1:]}", *(f"{row[name]:.3g}" for name in ("value", "other", "change"))]
        assert said in rows
    assert text.count("and 14 more that change") == 2
