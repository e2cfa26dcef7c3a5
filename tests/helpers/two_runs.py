"""Two runs over the same points, alike but for what is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from helpers.tables import make_table, score_record, with_value

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
    """The second run is a little more robust; its margins and Laplacians are known."""
    first, second = with_laplacian(run(), 0), with_laplacian(run(), 1)
    second = with_value(second, "logit_margin", values(first, "logit_margin") + noise(2) + 0.3)  # pyright: ignore[reportArgumentType] an array is a sequence
    return first, replace(second, points=with_column(second, "correct", [row % 7 != 0 for row in range(POINTS_MADE)]))


def noise(seed: int, points: int = POINTS_MADE) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=points)


def values(table: Table, label: str) -> np.ndarray:
    return table.wide()[label].to_numpy(dtype=np.float64)


def with_laplacian(table: Table, seed: int) -> Table:
    """`table` with its logit margins copied as Laplacians of either sign."""
    long = table.long()
    rows = long[long["score"] == "logit_margin"].assign(score="laplacian", parameters='{"method":"auto"}')
    rows["value"] = noise(seed, len(rows)) * (1.0 + seed)
    added = pa.Table.from_pandas(rows, schema=table.scores.schema, preserve_index=False)
    scores = (*table.record.scores, score_record("laplacian", {"method": "auto"}))
    return replace(
        table,
        scores=pa.concat_tables([table.scores, added]),
        record=replace(table.record, scores=scores),
    )


def with_column(table: Table, name: str, content: Sequence[Any]) -> pa.Table:
    place = POINTS.get_field_index(name)
    return table.points.set_column(place, POINTS.field(place), pa.array(content, POINTS.field(place).type))


def renamed(table: Table, prefix: str = "copy-") -> Table:
    """`table` with other ids."""
    parts = []
    for part in (table.points, table.scores):
        ids = pa.array([prefix + point for point in part["point"].to_pylist()])
        parts.append(part.set_column(0, part.schema.field(0), ids))
    return replace(table, points=parts[0], scores=parts[1])


def first_points(table: Table, count: int) -> Table:
    kept = table.points.slice(0, count)
    ids = set(kept["point"].to_pylist())
    mask = pa.array([point in ids for point in table.scores["point"].to_pylist()], pa.bool_())
    return replace(table, points=kept, scores=table.scores.filter(mask))
