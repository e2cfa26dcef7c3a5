"""Parquet of plain columns: extension types and pickles are refused, and no small file unpacks to a large one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from helpers.damaged import REFUSED_BY, hostile_columns, measured, parquet_bytes, signed

from brittle.data import open_points
from brittle.errors import ArtefactError
from brittle.store.reading import read_table


@pytest.mark.parametrize("kind", ["pickled type", "nested", "known type", "pickle of the file", "pickle of a column"])
def test_extension_types_and_pickles_in_parquet_are_refused(kind: str, run: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    content = parquet_bytes(hostile_columns(canary)[kind])
    (tmp_path / "x.parquet").write_bytes(content)
    signed(run, "points-00001.parquet", content)
    for function, place in ((open_points, tmp_path / "x.parquet"), (read_table, run)):
        with pytest.raises(ArtefactError) as caught:
            function(place)
        assert (caught.value.code, caught.value.exit_code) == ("file_refused", 6)
    assert not canary.exists()


def test_a_value_that_many_rows_repeat_is_held_once(tmp_path: Path) -> None:
    """25 rows share one "image" of 16 MB; together they would be 400 MB. The file has less than 1 MB."""
    indices = pa.array([0] * 25, pa.int32())
    images = pa.DictionaryArray.from_arrays(indices, pa.array([bytes(16_000_000)], pa.binary())).cast(pa.binary())
    table = pa.table({"image": pa.StructArray.from_arrays([images], ["bytes"])})
    content = parquet_bytes(table, compression="zstd", dictionary_pagesize_limit=1 << 30, write_statistics=False)
    assert len(content) < 1_000_000
    (tmp_path / "x.parquet").write_bytes(content)
    script = (
        f"{REFUSED_BY}\nfrom brittle.data import open_points\ndef attempt(): return refused(open_points, 'x.parquet')"
    )
    seen = measured(script, tmp_path)
    assert seen["code"] is not None
    assert seen["bytes"] < 250e6


def test_more_rows_than_bytes_are_refused(run: Path, tmp_path: Path) -> None:
    many = pa.table({"label": pa.array(np.zeros(3_000_000, np.int64))})
    images = pa.StructArray.from_arrays([pa.nulls(3_000_000, pa.binary())], ["bytes"])
    content = parquet_bytes(many.append_column("image", images), compression="zstd")
    assert len(content) < 1_000_000
    (tmp_path / "x.parquet").write_bytes(content)
    signed(run, "scores-00001.parquet", content)
    for function, place in ((open_points, tmp_path / "x.parquet"), (read_table, run)):
        with pytest.raises(ArtefactError, match="3,000,000 rows"):
            function(place)
