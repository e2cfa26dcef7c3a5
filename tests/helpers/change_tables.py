"""Tables with a Laplacian and the expected change of a probability, of known relation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from helpers.tables import make_table, score_record

from brittle.estimate import Status, parameters_json
from brittle.store.schemas import SCORES
from brittle.store.table import Table

LAPLACIAN = {"method": "auto"}


def with_score(
    table: Table,
    score: str,
    values: Sequence[float] | np.ndarray,
    parameters: dict[str, Any] | None = None,
    half: float = 0.0,
    status: Sequence[str] | None = None,
    quantity: str | None = None,
) -> Table:
    """`table` with one more score; NaN is a row without a number."""
    given = parameters or {}
    entry = score_record(score, given, quantity=quantity or score)
    numbers = [None if math.isnan(value) else float(value) for value in values]
    missing = Status.NONFINITE_LOGITS.slug
    rows = {
        "point": table.points["point"].to_pylist(),
        "score": [score] * len(numbers),
        "parameters": [parameters_json(given)] * len(numbers),
        "value": numbers,
        "low": [None if value is None else value - half for value in numbers],
        "high": [None if value is None else value + half for value in numbers],
        "status": list(status or [missing if value is None else Status.OK.slug for value in numbers]),
        "detail": [None] * len(numbers),
        "passes": [1] * len(numbers),
        **dict.fromkeys(("evidence", "counted_low", "counted_high"), [None] * len(numbers)),
    }
    return replace(
        table,
        scores=pa.concat_tables([table.scores, pa.table(rows, schema=SCORES)]),
        record=replace(table.record, scores=(*table.record.scores, entry)),
    )


def change(sigma: float, draws: int = 100, **more: Any) -> dict[str, Any]:
    return {"sigma": sigma, "draws": draws, "statistic": "mean"} | more


def curved_run(points: int = 60, sigmas: Sequence[float] = (0.1, 0.5), seed: int = 0) -> tuple[Table, np.ndarray]:
    """A run whose sampled changes are exactly those that its Laplacians predict."""
    curvature = np.random.default_rng(seed).standard_t(3, points)
    table = with_score(make_table(points=points, scores=()), "laplacian", curvature, LAPLACIAN)
    for sigma in sigmas:
        table = with_score(table, "probability_change", sigma**2 / 2 * curvature, change(sigma))
    return table, curvature


def shuffled(table: Table, seed: int = 0) -> Table:
    """`table` with its rows in another order."""
    generator = np.random.default_rng(seed)
    points, scores = (part.take(generator.permutation(part.num_rows)) for part in (table.points, table.scores))
    return replace(table, points=points, scores=scores)


def flipping_run(seed: int = 0) -> tuple[Table, pd.DataFrame]:
    """A run of 200 points, the more bent the more often flipped, of two noise settings and two numbers of draws."""
    generator = np.random.default_rng(seed)
    curvature = generator.normal(size=200)
    flips = np.clip(-0.2 * curvature + 0.05 * generator.normal(size=200), 0.0, 1.0)
    sure = generator.uniform(0.6, 1.0, 200)
    table = with_score(make_table(points=200, scores=()), "laplacian", curvature, LAPLACIAN)
    table = with_score(table, "max_probability", sure, quantity="probability")
    few, many = {"sigma": 0.1, "draws": 10}, {"sigma": 0.1, "draws": 100}
    table = with_score(table, "monte_carlo", np.zeros(200), few, quantity="flip_probability")
    table = with_score(table, "monte_carlo", flips, many, quantity="flip_probability")
    table = with_score(table, "monte_carlo", np.zeros(200), {"sigma": 0.01, "draws": 10}, quantity="flip_probability")
    return table, pd.DataFrame({"laplacian": curvature, "flips": flips, "sure": sure})
