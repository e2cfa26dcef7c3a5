"""Tables in Parquet files of a folder: equal tables are equal bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from studies.study import Tables

Frame = Any
"""A frame of pandas, or a column of one: its stubs take a cell for a series."""

TIMES, RUNTIMES = "times", "runtimes"
"""The tables of seconds: those that steps took, and those that were measured as a result. All other results are the
same bytes in another run."""


def write_tables(folder: Path, tables: Tables) -> None:
    """Write each table as `NAME.parquet`, and take away the Parquet files of others."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.parquet"):
        if old.stem not in tables:
            old.unlink()
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")


def read_tables(folder: Path) -> dict[str, pa.Table]:
    """Every `NAME.parquet` of a folder by its name."""
    return {path.stem: pq.read_table(path) for path in sorted(folder.glob("*.parquet"))}


def frames_of(tables: Tables) -> dict[str, Frame]:
    """Every table as a frame."""
    return {name: table.to_pandas() for name, table in tables.items()}


def minutes_of(tables: Tables) -> float:
    """How long all steps took."""
    return float(tables[TIMES].to_pandas()["seconds"].sum() / 60)


def as_table(frame: Frame) -> pa.Table:
    """Return a frame without its index."""
    return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
