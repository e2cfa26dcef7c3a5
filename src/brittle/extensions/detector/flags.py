"""One row per point: is its prediction brittle?"""

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

OF_POINTS = ("point", "row", "name", "label", "predicted")

FLAGS = pa.schema(
    [
        *(POINTS.field(name) for name in OF_POINTS),
        pa.field("score", pa.float64()),
        pa.field("brittle", pa.bool_(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
    ]
)
"""A point's id, position and name in the data, label, predicted class, score (larger is safer; null where it has none,
and then the point is brittle), the flag, and the status of the score."""


def flag_frame(run: Table, values: NDArray[np.float64], brittle: NDArray[np.bool_]) -> pd.DataFrame:
    """The flags of the points of a run that holds the score of the detector alone, with the columns of `FLAGS`."""
    columns = {
        **{name: run.points[name] for name in OF_POINTS},
        "score": pa.array(values, from_pandas=True),
        "brittle": pa.array(brittle),
        "status": run.scores["status"],
    }
    return pa.table(columns, schema=FLAGS).to_pandas()


def check_out(path: str | os.PathLike[str]) -> Path:
    """The path of a file that `write_flags` can write.

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
    """Write `flags`, with the columns of `FLAGS`, in the form that the end of the file's name says.

    In a CSV file texts are written as `brittle.store.export.cell` says, so that neither a terminal nor a spreadsheet
    runs any; `brittle.store.export.text_of` is the way back.

    Returns:
        the path.

    Raises:
        ParameterError: the file name ends otherwise.
        StorageError: it cannot be written, or is a link, a pipe, a device or a folder.
    """
    path = check_out(path)
    table = pa.Table.from_pandas(flags, FLAGS, preserve_index=False).replace_schema_metadata()
    with replacing(path) as file:
        FORMS[path.suffix]([table], FLAGS, file)
    return path
