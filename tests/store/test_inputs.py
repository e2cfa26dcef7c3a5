"""Inputs in a run folder: no digit is lost, and cells that hold no input are refused, whatever they weigh."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers.damaged import parquet_bytes, signed
from helpers.tables import make_table

import brittle
from brittle.errors import StorageError
from brittle.store.reading import read_table, verify
from brittle.store.schemas import MAX_KEPT, keeps, pack, unpack

FEATURES = 5
ODD = (0.0, -0.0, 5e-324, 1e-45, np.finfo(np.float32).max, np.finfo(np.float64).max, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7, 1), (7, 3, 4), (7, MAX_KEPT), (0, 4)])
def test_inputs_come_back_bit_by_bit(kind: Any, shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(0).normal(size=shape).astype(kind)
    with np.errstate(over="ignore"):
        numbers.reshape(-1)[: len(ODD)] = np.array(ODD).astype(kind)[: numbers.size]
    cells = [*pack(numbers), None]
    assert {len(cell) for cell in cells if cell is not None} <= {
        numbers[:1].nbytes or np.prod(shape[1:]) * kind().nbytes
    }
    unpacked = unpack(pa.chunked_array([pa.array(cells, pa.binary())]), int(np.prod(shape[1:])))
    assert unpacked[:-1].astype(kind).tobytes() == numbers.tobytes()
    assert np.isnan(unpacked[-1]).all()


def test_small_inputs_are_kept() -> None:
    assert all(map(keeps, [(4,), (), (MAX_KEPT,), (16, 16)]))
    assert not any(map(keeps, [(257,), (0,), (-2, -2)]))


def save(folder: Path, kind: str = "points", cell: Callable[[bytes], bytes | None] | None = None, **data: Any) -> Path:
    """Save a run with inputs, with `cell` applied to the input in the third row, and valid digests."""
    table = make_table(points=20, scores=("logit_margin", "input_margin"), features=FEATURES)
    table = replace(table, record=replace(table.record, data=replace(table.record.data, **data)))
    if cell is not None:
        rows = getattr(table, kind)
        cells = rows["input"].to_pylist()
        cells[2] = cell(cells[2])
        place = rows.schema.get_field_index("input")
        table = replace(table, **{kind: rows.set_column(place, rows.schema.field(place), pa.array(cells, pa.binary()))})
    table.save(folder)
    return folder


NAN = np.full(1, np.nan, np.float32).tobytes()
WRONG: dict[str, Callable[[bytes], bytes | None]] = {
    "empty": lambda cell: b"",
    "a number more": lambda cell: cell + cell[:4],
    "numbers of two bytes": lambda cell: cell[: 2 * FEATURES],
    "a megabyte": lambda cell: bytes(1 << 20),
}


@pytest.mark.parametrize("kind", ["points", "counterexamples"])
@pytest.mark.parametrize("change", sorted(WRONG))
def test_a_cell_of_another_length_is_refused(change: str, kind: str, tmp_path: Path) -> None:
    assert_damaged(
        save(tmp_path / "run", kind, WRONG[change]), kind, "holds inputs that are no 5 numbers of 4 or 8 bytes"
    )


@pytest.mark.parametrize("shape", [None, (3, 32, 32), (-1, -5)])
def test_inputs_in_a_run_without_inputs_are_refused(shape: tuple[int, ...] | None, tmp_path: Path) -> None:
    assert_damaged(save(tmp_path / "run", input_shape=shape), "points", "holds inputs where the run has none to keep")


def assert_damaged(place: Path, kind: str, problem: str) -> None:
    with pytest.raises(StorageError, match=re.escape(problem)) as caught:
        read_table(place)
    assert caught.value.code == "shard_damaged"
    problems = {fault.file: fault.problem for fault in verify(place)}
    assert problem in problems[f"{kind}-00000.parquet"]


@pytest.mark.parametrize("cell", [lambda cell: None, lambda cell: pack(np.ones((1, FEATURES)))[0]])
@pytest.mark.parametrize("kind", ["points", "counterexamples"])
def test_a_cell_may_be_empty_or_of_double_precision(kind: str, cell: Any, tmp_path: Path) -> None:
    place = save(tmp_path / "run", kind, cell)
    assert verify(place) == []
    assert getattr(read_table(place), kind)["input"].to_pylist()[2] == cell(b"")


def test_nan_inputs_of_failed_points_are_read(tmp_path: Path) -> None:
    table = make_table(points=20, scores=("logit_margin",), features=FEATURES, broken=3)
    place = table.points.schema.get_field_index("input")
    cells = [*[NAN * FEATURES] * 3, *table.points["input"].to_pylist()[3:]]
    points = table.points.set_column(place, table.points.schema.field(place), pa.array(cells, pa.binary()))
    replace(table, points=points).save(tmp_path / "run")
    assert verify(tmp_path / "run") == []
    assert brittle.read_table(tmp_path / "run").points["input"].to_pylist() == cells


def test_lists_as_cells_are_refused(tmp_path: Path) -> None:
    """885 bytes hold a list of 100,000,000 numbers; the column is refused by its type, before a value is read."""
    place = save(tmp_path / "run")
    points = read_table(place).points
    values = pa.ListArray.from_arrays(pa.array([0, *[10**6] * 20], pa.int32()), pa.array(np.zeros(10**6)))
    points_of_lists = points.set_column(points.schema.get_field_index("input"), "input", values)
    signed(place, "points-00000.parquet", parquet_bytes(points_of_lists))
    with pytest.raises(StorageError, match="other columns than a run writes, or of other types"):
        read_table(place)
