"""Files for other programs hold the cells of the frame, and nothing that a spreadsheet would run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.data_files import refused
from helpers.tables import HOSTILE, make_table
from pyarrow import csv

from brittle.cli.commands import main
from brittle.store.export import text_of
from brittle.store.table import Table


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table(points=12, scores=("moments", "input_margin", "laplacian"), broken=2)


def with_names(table: Table, texts: list[str]) -> Table:
    """Return the table with these names of points."""
    points, place = table.points, table.points.column_names.index("name")
    names = pa.array(texts, points.schema.field("name").type)
    return replace(table, points=points.set_column(place, points.schema.field("name"), names))


def read_file(path: Path) -> pd.DataFrame:
    """Read a file as users of its format do."""
    if path.suffix == ".csv":
        options = csv.ConvertOptions(column_types={"point": pa.string()}, strings_can_be_null=True)
        return csv.read_csv(path, convert_options=options).to_pandas()  # Pandas 2 reads floats up to their last digits
    if path.suffix == ".arrow":
        return pa.ipc.open_file(path).read_all().to_pandas()
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    text = path.read_text(encoding="utf-8")
    return pd.DataFrame(
        [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    )


@pytest.mark.parametrize("all_columns", [False, True])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".json", ".jsonl"])
def test_every_file_holds_the_frame(table: Table, suffix: str, all_columns: bool, tmp_path: Path) -> None:
    path = table.export(tmp_path / f"points{suffix}", whole=all_columns)
    expected, frame = table.frame(whole=all_columns), read_file(path)
    assert frame.columns.tolist() == expected.columns.tolist()
    if "json" in suffix:
        expected = expected.replace([math.inf, -math.inf], np.nan)
    numbers = expected.select_dtypes("float").columns
    for name in numbers:
        np.testing.assert_allclose(frame[name].astype(float), expected[name], rtol=1e-14)
    texts = [name for name in expected if name not in numbers]
    for name in texts:
        pairs = zip(frame[name], expected[name], strict=True)
        assert all(cell == truth or (pd.isna(cell) and pd.isna(truth)) for cell, truth in pairs), name


@pytest.mark.parametrize("all_columns", [False, True])
def test_arrow_has_the_cells_of_the_frame_and_nulls(table: Table, all_columns: bool) -> None:
    cells, expected = table.to_arrow(limit=0.5, whole=all_columns), table.frame(0.5, whole=all_columns)
    assert cells.column_names == expected.columns.tolist()
    for name in expected:
        is_known = expected[name].notna().tolist()
        assert cells[name].is_valid().to_pylist() == is_known, name
        assert cells[name].drop_null().to_pylist() == expected[name][is_known].tolist(), name
    assert not all_columns or cells["correct"].null_count == 2


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_partly_named_classes_are_text(suffix: str, tmp_path: Path) -> None:
    """Columns of Arrow have one type, so names and numbers do not mix."""
    table = make_table(points=12, class_names=("ant",))
    frame = read_file(table.export(tmp_path / f"points{suffix}"))
    for name in ("label", "predicted"):
        codes = table.points[name].to_pylist()
        assert min(codes) == 0 < max(codes)
        assert frame[name].tolist() == ["ant" if code == 0 else str(code) for code in codes]


def test_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    """A point for each hostile text."""
    texts = [text for text in HOSTILE if "\udc80" not in text]  # Arrow holds no surrogates
    table = with_names(make_table(points=len(texts), scores=("moments",)), texts)
    names = pd.read_csv(table.export(tmp_path / "points.csv"))["name"]
    assert len(names) == len(texts) > 30
    assert not names.str.match(r"[=+\-@\t\r]").any()
    assert [text_of(name) for name in names] == table.frame()["name"].tolist()


def test_the_command_writes_it(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table.save("run")
    assert main(["export", "run", "points.csv"]) == 0
    assert Path("points.csv").read_bytes() == table.export("again.csv").read_bytes()
    assert main(["export", "run", "points.csv"]) == 7
    assert main(["export", "run", "points.csv", "--overwrite", "--whole"]) == 0
    assert main(["export", "run", "points.xlsx"]) == 3
    refused("parameter", ".csv", table.export, tmp_path / "points.xlsx")
    refused("parameter", "limit", table.to_arrow, 2.0)
