"""Data for the page's script: the run's own numbers, to the bit."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.change_runs import change_run, other_run
from helpers.pages import EVERY_SCORE
from helpers.tables import HOSTILE, make_table

from brittle.extensions.report.render import open_contents
from brittle.extensions.report.script_data import KINDS, inert_json, page_data
from brittle.store.table import Table


def data_of(table: Table, **options: Any) -> dict[str, Any]:
    page = page_data(open_contents(table, **options))
    assert page is not None
    return page


def numbers(packed: Mapping[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["bytes"]), dtype=KINDS[packed["kind"]])


def texts(packed: Mapping[str, Any] | None, count: int) -> list[str]:
    if packed is None:
        return [""] * count
    return ["" if place < 0 else packed["names"][place] for place in numbers(packed["codes"])]


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(points=60, scores=EVERY_SCORE, budgets=(10, 400), broken=3)


@pytest.fixture(scope="module")
def data(table: Table) -> dict[str, Any]:
    return data_of(table)


def test_every_score_has_its_numbers(table: Table, data: dict[str, Any]) -> None:
    columns = {column.label: column for column in table.columns}
    assert {column["name"] for column in data["columns"]} == {column.score for column in table.columns}
    for packed in data["columns"]:
        column = columns[packed["label"]]
        for name in ("value", "low", "high"):
            cells = column.rows[name].to_numpy(np.float64)
            if packed[name] is None:
                assert np.isnan(cells).all()
            elif packed[name] == "value":
                assert np.array_equal(cells, column.value.to_numpy(np.float64), equal_nan=True)
            else:
                assert np.array_equal(numbers(packed[name]), cells, equal_nan=True), (column.label, name)
        assert texts(packed["status"], len(column)) == column.status.fillna("").tolist()
        assert texts(packed["details"], len(column)) == column.rows["detail"].fillna("").tolist()


def test_points_match_the_table(table: Table, data: dict[str, Any]) -> None:
    points = table.points.to_pandas()
    assert data["count"] == len(points)
    assert data["ids"] == points["point"].tolist()
    assert texts(data["names"], len(points)) == points["name"].fillna("").tolist()
    assert numbers(data["label"]).tolist() == points["label"].fillna(-1).astype(int).tolist()
    assert numbers(data["runs"][0]["predicted"]).tolist() == points["predicted"].fillna(-1).astype(int).tolist()


def test_the_nearest_inputs_match_the_run(table: Table, data: dict[str, Any]) -> None:
    page_pairs = {(data["ids"][entry["point"]], entry["predicted"]) for entry in data["nearest"]}
    pairs = {(row["point"], row["predicted"]) for row in table.counterexamples.to_pylist()}
    assert page_pairs == pairs
    assert pairs


def test_another_run_is_matched_point_by_point() -> None:
    run_a, run_b = change_run(40), other_run(points=40)
    order = list(reversed(range(40)))
    reordered = replace(run_b, points=run_b.points.take(order))
    for run in (run_b, reordered):
        data = data_of(run_a, against={"other": run})
        assert [entry["name"] for entry in data["runs"]] == ["this run", "other"]
        predicted = run.points.to_pandas().set_index("point")["predicted"].reindex(data["ids"])
        assert numbers(data["runs"][1]["predicted"]).tolist() == predicted.fillna(-1).astype(int).tolist()
        labels = [column["label"] for column in data["columns"] if column["run"] == 0]
        run_columns = [column for column in data["columns"] if column["run"] == 1]
        assert [column["label"] for column in run_columns] == labels
        for packed in run_columns:
            column = next(column for column in run.columns if column.label == packed["label"])
            value = column.value.reindex(data["ids"]).to_numpy().astype(KINDS[packed["value"]["kind"]])
            assert np.array_equal(numbers(packed["value"]), value, equal_nan=True)


def test_points_that_are_no_images_have_their_features() -> None:
    run = make_table(points=20, scores=("monte_carlo", "input_margin"), features=5, not_found=2)
    data = data_of(run)
    assert data["pictures"] is None
    assert data["inputs"]["names"] == [f"x{place}" for place in range(5)]
    values, counterexamples = (numbers(data["inputs"][name]).reshape(20, 5) for name in ("values", "neighbours"))
    assert np.array_equal(values, [np.frombuffer(cell, "<f4") for cell in run.points["input"].to_pylist()])
    inputs_by_point = {row["point"]: np.frombuffer(row["input"], "<f4") for row in run.counterexamples.to_pylist()}
    for place, point in enumerate(data["ids"]):
        assert np.array_equal(counterexamples[place], inputs_by_point.get(point, np.full(5, np.nan)), equal_nan=True)


@pytest.mark.parametrize(
    ("categories", "levels"),
    [
        ({"x1": {"levels": ["red", 7], "category": True}}, {"x1": ["red", "7"]}),
        ({"x1": ["red"], "x2": {"levels": "red"}}, {}),
        (["x1"], {}),
        (None, {}),
    ],
)
def test_categories_have_their_text(categories: Any, levels: dict[str, list[str]]) -> None:
    """Categories recorded in another form have no text."""
    run = make_table(points=9, scores=("monte_carlo",), features=5)
    data_record = replace(run.record.data, reading={"categories": categories})
    data = data_of(replace(run, record=replace(run.record, data=data_record)))
    assert data["inputs"]["levels"] == levels


def test_no_text_ends_the_element() -> None:
    for text in HOSTILE:
        json_text = inert_json({"name": text, text: [text]})
        assert json.loads(json_text) == {"name": text, text: [text]}, repr(text)
        assert not set(json_text) & set("<>&\u2028\u2029"), repr(text)
