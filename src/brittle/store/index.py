"""The index of a frame of pandas: what the record of a run holds of it, and the index that this makes of texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def describe_index(index: pd.Index, points: pa.Table) -> dict[str, Any]:
    """Return the type and name of an index, and the column of the points that has its labels as text.

    An index that no column restores, such as one of several levels, becomes one of texts.
    """
    name = index.name if isinstance(index.name, str | int) else None
    for column in points.column_names:
        description = {"dtype": str(index.dtype), "name": name, "column": column}
        restored = make_index(points, description)
        if restored is not None and restored.equals(index):
            return description
    column = "point" if points["point"].equals(points["name"]) else "name"
    return {"dtype": "object", "name": name, "column": column}


def make_index(points: pa.Table, description: Mapping[str, Any]) -> pd.Index | None:
    """Make the index that `describe_index` described; None where the points do not have it."""
    import pandas as pd

    try:
        labels = pd.Index(points[description["column"]].to_pylist())
        return labels.astype(description["dtype"]).rename(description["name"])
    except (ArithmeticError, LookupError, NotImplementedError, TypeError, ValueError):
        return None
