"""Tables of flags, and of predicted probabilities: one row per point."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from brittle.data import Batch
from brittle.data.points import readable
from brittle.errors import ParameterError
from brittle.estimate import Status
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


def prediction_frame(batch: Batch, logits: Tensor, p_robust: Tensor, bound: Tensor) -> pd.DataFrame:
    """Return a frame of some points, with the probabilities and the bounds `[B, K]`, 0 where a point has none."""
    failed = p_robust.isnan().any(dim=1) | ~readable(batch).to(p_robust.device)
    finite = batch.inputs.flatten(1).isfinite().all(dim=1)
    reasons = [Status.NONFINITE_LOGITS if is_finite else Status.NONFINITE_INPUT for is_finite in finite.tolist()]
    states = [
        status if status is not Status.OK or not has_failed else reason
        for status, has_failed, reason in zip(batch.status, failed.tolist(), reasons, strict=True)
    ]
    predicted = pd.array(logits.argmax(dim=1).tolist(), dtype="Int64")
    predicted[failed.cpu().numpy()] = pd.NA
    ends = [""] if p_robust.shape[1] == 1 else [f"_{k + 1}" for k in range(p_robust.shape[1])]
    numbers = {
        f"{name}{end}": column.cpu().numpy()
        for name, values in (("p_robust", p_robust), ("bound", bound))
        for end, column in zip(ends, values.T, strict=True)
    }
    values = batch.ids, batch.rows, batch.names, batch.labels, predicted
    return pd.DataFrame(dict(zip(POINT_FIELDS, values, strict=True)) | numbers | {"status": [s.slug for s in states]})


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
    """Write `flags`, or what `Surrogate.apply` returns, in the form of the suffix of `path`.

    `brittle.store.export.cell` escapes the texts of a CSV file, so that neither a terminal nor a spreadsheet runs
    them; `brittle.store.export.text_of` reads them back.

    Returns:
        the path.

    Raises:
        ParameterError: the file name ends in none of `brittle.store.export.FORMS`.
        StorageError: it cannot be written, or is a link, a pipe, a device or a folder.
    """
    path = check_out(path)
    schema = pa.schema([FLAGS.field(name) if name in FLAGS.names else pa.field(name, pa.float64()) for name in flags])
    table = pa.Table.from_pandas(flags, schema, preserve_index=False).replace_schema_metadata()
    with replacing(path) as file:
        FORMS[path.suffix]([table], schema, file)
    return path
