"""Two runs over the same points that differ in a known way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from helpers.tables import make_table, with_score, with_value

from brittle.store.schemas import POINTS
from brittle.store.table import Table

POINTS_MADE = 60
RECIPE: dict[str, Any] = {
    "points": POINTS_MADE,
    "scores": ("monte_carlo", "logit_margin", "input_margin"),
    "sigmas": (0.1,),
}


def run(**recipe: Any) -> Table:
    return make_table(**{**RECIPE, "budgets": (50,), **recipe})


def two_runs() -> tuple[Table, Table]:
    """Return two runs; the second is a little more robust, with known margins and Laplacians."""
    before, second = with_laplacian(run(), 0), with_laplacian(run(), 1)
    second = with_value(second, "logit_margin", values(before, "logit_margin") + noise(2) + 0.3)  # pyright: ignore[reportArgumentType] an array is a sequence
    return before, replace(second, points=with_column(second, "correct", [row % 7 != 0 for row in range(POINTS_MADE)]))


def noise(seed: int, points: int = POINTS_MADE) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=points)


def values(table: Table, label: str) -> np.ndarray:
    return table.frame(whole=True)[label].to_numpy(dtype=np.float64)


def with_laplacian(table: Table, seed: int) -> Table:
    """Return `table` with Laplacians of either sign."""
    return with_score(table, "laplacian", noise(seed, len(table.points)) * (1.0 + seed), {"method": "auto"})


def with_column(table: Table, name: str, content: Sequence[Any]) -> pa.Table:
    place = POINTS.get_field_index(name)
    return table.points.set_column(place, POINTS.field(place), pa.array(content, POINTS.field(place).type))


def renamed(table: Table, prefix: str = "copy-") -> Table:
    """Return `table` with other ids."""
    parts = []
    for part in (table.points, table.scores):
        ids = pa.array([prefix + point for point in part["point"].to_pylist()])
        parts.append(part.set_column(0, part.schema.field(0), ids))
    return replace(table, points=parts[0], scores=parts[1])
