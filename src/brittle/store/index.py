"""The index of a frame of pandas: what the record of a run holds of it, and the index that this makes of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def describe_index(index: pd.Index, points: pa.Table) -> dict[str, Any]:
    """Return the type and the name of an index, and the column of the points that has its labels as text: those that
    no text tells, such as several levels, are that text."""
    name = index.name if isinstance(index.name, str | int) else None
    for column in points.column_names:
        known = {"dtype": str(index.dtype), "name": name, "column": column}
        found = make_index(points, known)
        if found is not None and found.equals(index):
            return known
    column = "point" if points["point"].equals(points["name"]) else "name"
    return {"dtype": "object", "name": name, "column": column}


def make_index(points: pa.Table, known: Mapping[str, Any]) -> pd.Index | None:
    """Make the index that `describe_index` described; None where the points have none such."""
    import pandas as pd

    try:
        return pd.Index(points[known["column"]].to_pylist()).astype(known["dtype"]).rename(known["name"])
    except (ArithmeticError, LookupError, NotImplementedError, TypeError, ValueError):
        return None
