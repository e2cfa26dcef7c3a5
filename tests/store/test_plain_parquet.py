"""Parquet of plain columns: extension types are refused, and no small file unpacks to a large one."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from helpers.damaged import REFUSED_BY, hostile_columns, measured, parquet_bytes, signed

from brittle.data import open_points
from brittle.errors import ArtefactError, BrittleError
from brittle.store.reading import read_table
from brittle.store.schemas import POINTS


@pytest.mark.parametrize("kind", ["pickled type", "nested", "known type", "pickle of the file", "pickle of a column"])
def test_extension_types_are_refused_and_no_pickle_is_opened(kind: str, run: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    content = parquet_bytes(hostile_columns(canary)[kind])
    (tmp_path / "x.parquet").write_bytes(content)
    signed(run, "points-00001.parquet", content)
    for function, place in ((open_points, tmp_path / "x.parquet"), (read_table, run)):
        if kind.startswith("pickle of"):
            with contextlib.suppress(BrittleError):
                function(place)
        else:
            with pytest.raises(ArtefactError) as caught:
                function(place)
            assert (caught.value.code, caught.value.exit_code) == ("file_refused", 6)
    assert not canary.exists()


OPEN = """
from brittle.data import open_points
from brittle.store.reading import read_table
refused(open_points, "small/points-00000.parquet"), refused(read_table, "small")  # imports, and pages of libraries
def attempt(): return [refused(open_points, "x.parquet"), refused(read_table, "run")]
"""

ROWS_REPEATED, VALUE = 1024, bytes(600_000)


def test_a_value_that_many_rows_repeat_is_not_unpacked_for_all(run: Path, tmp_path: Path) -> None:
    """1,024 rows share a value: together they would be 600 MB. The files have less than 1 MB each."""
    shutil.copytree(run, tmp_path / "small")
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS_REPEATED, pa.int32()), pa.array([VALUE]))
    tables = {
        tmp_path / "x.parquet": pa.table({"image": pa.StructArray.from_arrays([repeated], ["bytes"])}),
        run / "points-00001.parquet": pa.Table.from_pylist(
            [{"point": str(row), "row": row, "status": "ok", "passes": 0} for row in range(ROWS_REPEATED)],
            schema=POINTS,
        ).set_column(POINTS.get_field_index("input"), "input", repeated),
    }
    options: dict[str, Any] = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 30, "write_statistics": False}
    for path, table in tables.items():
        path.write_bytes(parquet_bytes(table, store_schema=False, **options))
        assert path.stat().st_size < 1_000_000
    signed(run, "points-00001.parquet", (run / "points-00001.parquet").read_bytes())
    report = measured(REFUSED_BY + OPEN, tmp_path)
    assert report["code"] == [ArtefactError.exit_code] * 2
    assert report["bytes"] < 400e6


def test_more_rows_than_bytes_are_refused(run: Path, tmp_path: Path) -> None:
    labels = pa.table({"label": pa.array(np.zeros(3_000_000, np.int64))})
    images = pa.StructArray.from_arrays([pa.nulls(3_000_000, pa.binary())], ["bytes"])
    content = parquet_bytes(labels.append_column("image", images), compression="zstd")
    assert len(content) < 1_000_000
    (tmp_path / "x.parquet").write_bytes(content)
    signed(run, "scores-00001.parquet", content)
    for function, place in ((open_points, tmp_path / "x.parquet"), (read_table, run)):
        with pytest.raises(ArtefactError, match="3,000,000 rows"):
            function(place)
