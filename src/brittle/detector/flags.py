"""One row per point: is its prediction brittle?"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from brittle.errors import ParameterError, StorageError

FLAGS = pa.schema(
    [
        pa.field("point", pa.string(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("label", pa.int64()),
        pa.field("predicted", pa.int64()),
        pa.field("score", pa.float64()),
        pa.field("brittle", pa.bool_(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("forced", pa.bool_(), nullable=False),
    ]
)
"""A point's id, position and name in the data, label, predicted class, score (larger is safer; null where it has none,
and then the point is brittle), the flag, the status of the score, and whether the detector was forced onto a model that
it was not fitted for."""

GUARDED = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Starts of text that a spreadsheet would run as a formula."""


def check_out(path: str | os.PathLike[str]) -> Path:
    """The path of a file that `write_flags` can write.

    Raises:
        ParameterError: the file name does not end in `.parquet` or `.csv`.
        StorageError: there is no such folder, or it is not writable.
    """
    path = Path(path)
    if path.suffix not in _WRITERS:
        raise ParameterError("out", f"the file must end in {' or '.join(_WRITERS)}; found {path.name!r}")
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise StorageError("unwritable", f"{path} cannot be written: its folder must exist; choose another")
    return path


def write_flags(flags: pa.Table, path: str | os.PathLike[str]) -> Path:
    """Write `flags`, with the schema `FLAGS`, to a `.parquet` or `.csv` file.

    In a CSV file a text that a spreadsheet would run as a formula starts with an apostrophe.

    Returns:
        the path.

    Raises:
        ParameterError: the file name ends otherwise.
        StorageError: it cannot be written.
    """
    path = check_out(path)
    try:
        _WRITERS[path.suffix](flags, path)
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be written ({error.strerror}); choose another") from error
    return path


def _write_csv(flags: pa.Table, path: Path) -> None:
    for position, field in enumerate(flags.schema):
        if pa.types.is_string(field.type):
            texts = flags.column(position).to_pylist()
            guarded = [f"'{text}" if text and text.startswith(GUARDED) else text for text in texts]
            flags = flags.set_column(position, field, pa.array(guarded, field.type))
    csv.write_csv(flags, path)


def _write_parquet(flags: pa.Table, path: Path) -> None:
    pq.write_table(flags, path, compression="zstd", write_page_checksum=True)


_WRITERS = {".parquet": _write_parquet, ".csv": _write_csv}
