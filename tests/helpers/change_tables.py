"""Tables with a Laplacian and the expected change of a probability, of known relation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from helpers import tables
from helpers.tables import make_table

from brittle.store.table import Table

LAPLACIAN = {"method": "auto"}


def with_score(table: Table, score: str, values: Any, parameters: Any = None, half: float = 0.0, **more: Any) -> Table:
    """`table` with one more score, whose intervals are twice `half` wide."""
    numbers = np.array(values, dtype=np.float64)
    return tables.with_score(
        table, score, numbers, parameters, ends=(numbers - half, numbers + half), **({"quantity": score} | more)
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
