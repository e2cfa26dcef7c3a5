"""Runs with a Laplacian and sampled changes, as the report shows them beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from helpers.change_tables import LAPLACIAN, change, with_score
from helpers.pages import values_of
from helpers.tables import make_table

from brittle.report.chapters import expected_change, other_runs
from brittle.store.schemas import POINTS
from brittle.store.table import Table


def change_run(
    points: int = 160,
    sigmas: tuple[float, ...] = (0.05, 0.2),
    factor: float = 1.0,
    half: float = 1e-4,
    seed: int = 0,
    scores: tuple[str, ...] = ("monte_carlo", "max_probability"),
    kinks: int = 3,
    **recipe: Any,
) -> Table:
    """A run with a Laplacian, and sampled changes that are `factor` times what it predicts, within -1 and 1."""
    table = make_table(points=points, scores=scores, sigmas=sigmas, budgets=(50,), seed=seed, **recipe)
    rng = np.random.default_rng([seed, 7])
    curvature = rng.standard_t(3, points) - 0.5
    status = ["kink"] * min(kinks, points) + ["ok"] * max(points - kinks, 0)
    table = with_score(table, "laplacian", curvature, LAPLACIAN, status=status)
    for sigma in sigmas:
        sampled = np.clip(factor * sigma**2 / 2 * curvature, -1.0, 1.0)
        table = with_score(table, "probability_change", sampled, change(sigma), half=half)
    return table


def other_run(seed: int = 1, points: int = 160) -> Table:
    """Another run over the points of `change_run()`, with their labels."""
    names, other = ["label", "correct"], change_run(points, seed=seed)
    labelled = change_run(points).points.select(names).to_pylist()
    rows = [row | label for row, label in zip(other.points.to_pylist(), labelled, strict=True)]
    return replace(other, points=pa.Table.from_pylist(rows, schema=POINTS))


def without(table: Table, score: str) -> Table:
    """`table` without one score."""
    frame = table.long()
    entries = tuple(entry for entry in table.record.scores if entry.score != score)
    kept = pa.Table.from_pandas(frame[frame["score"] != score], schema=table.scores.schema, preserve_index=False)
    return replace(table, scores=kept, record=replace(table.record, scores=entries))


def another(table: Table, **model: Any) -> Table:
    """`table` as another model would have recorded it."""
    return replace(table, record=replace(table.record, model=replace(table.record.model, **model)))


def change_values(table: Table) -> dict[str, Any]:
    """What the chapter on the expected change says of a run."""
    return values_of(expected_change.CHAPTER, table)


def beside(table: Table, against: Mapping[str, Table]) -> dict[str, Any]:
    """What the chapter on other runs says of a run."""
    return values_of(other_runs.CHAPTER, table, against=against)
