"""The table of flags: one row per point."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from brittle.errors import ParameterError
from brittle.store.export import FORMS
from brittle.store.schemas import POINTS
from brittle.store.table import Table
from brittle.store.writing import check_writable_file, replacing

POINT_FIELDS = ("point", "row", "name", "label", "predicted")

FLAGS = pa.schema(
    [
        *(POINTS.field(name) for name in POINT_FIELDS),
        pa.field("score", pa.float64()),
        pa.field("brittle", pa.bool_(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
    ]
)
"""Id, position and name in the data, label and predicted class of a point, its score (larger is safer; null where
missing, and then the point is brittle), the flag, and the status of the score."""


def flag_frame(run: Table, values: NDArray[np.float64], brittle: NDArray[np.bool_]) -> pd.DataFrame:
    """Return a frame of the columns of `FLAGS`, for a run that holds the score of the detector alone."""
    columns = {
        **{name: run.points[name] for name in POINT_FIELDS},
        "score": pa.array(values, from_pandas=True),
        "brittle": pa.array(brittle),
        "status": run.scores["status"],
    }
    return pa.table(columns, schema=FLAGS).to_pandas()


def check_out(path: str | os.PathLike[str]) -> Path:
    """Return `path` if `write_flags` can write it.

    Raises:
        ParameterError: the file name ends in none of `brittle.store.export.FORMS`.
        StorageError: there is no such folder, it is not writable, or there is a link, a pipe, a device or a folder.
    """
    path = Path(path)
    if path.suffix not in FORMS:
        raise ParameterError(f"the file must end in {', '.join(FORMS)}; found {path.name!r}")
    check_writable_file(path)
    return path


def write_flags(flags: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write `flags`, with the columns of `FLAGS`, in the form of the suffix of `path`.

    `brittle.store.export.cell` escapes the texts of a CSV file, so that neither a terminal nor a spreadsheet runs
    them; `brittle.store.export.text_of` reads them back.

    Returns:
        the path.

    Raises:
        ParameterError: the file name ends in none of `brittle.store.export.FORMS`.
        StorageError: it cannot be written, or is a link, a pipe, a device or a folder.
    """
    path = check_out(path)
    table = pa.Table.from_pandas(flags, FLAGS, preserve_index=False).replace_schema_metadata()
    with replacing(path) as file:
        FORMS[path.suffix]([table], FLAGS, file)
    return path
