"""Runs with a Laplacian and sampled changes in a known relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from helpers.pages import values_of
from helpers.tables import make_table, with_score

from brittle.extensions.expected_change import chapter as expected_change
from brittle.extensions.report.chapters import other_runs
from brittle.store.schemas import POINTS
from brittle.store.table import Table

LAPLACIAN = {"method": "auto"}


def change(sigma: float, draws: int = 100, **more: Any) -> dict[str, Any]:
    return {"sigma": sigma, "draws": draws, "statistic": "mean"} | more


def curved_run(points: int = 60, sigmas: Sequence[float] = (0.1, 0.5), seed: int = 0) -> tuple[Table, np.ndarray]:
    """Return a run whose sampled changes are exactly those that its Laplacians predict."""
    curvature = np.random.default_rng(seed).standard_t(3, points)
    table = with_score(make_table(points=points, scores=()), "laplacian", curvature, LAPLACIAN)
    for sigma in sigmas:
        table = with_score(table, "probability_change", sigma**2 / 2 * curvature, change(sigma))
    return table, curvature


def flipping_run(seed: int = 0) -> tuple[Table, pd.DataFrame]:
    """Return a run of 200 points that flip more often the more they bend, with two sigmas and two numbers of draws."""
    generator = np.random.default_rng(seed)
    curvature = generator.normal(size=200)
    flips = np.clip(-0.2 * curvature + 0.05 * generator.normal(size=200), 0.0, 1.0)
    sure = generator.uniform(0.6, 1.0, 200)
    table = with_score(make_table(points=200, scores=()), "laplacian", curvature, LAPLACIAN)
    table = with_score(table, "max_probability", sure)
    ten_draws, hundred_draws = {"sigma": 0.1, "draws": 10}, {"sigma": 0.1, "draws": 100}
    table = with_score(table, "monte_carlo", np.zeros(200), ten_draws)
    table = with_score(table, "monte_carlo", flips, hundred_draws)
    table = with_score(table, "monte_carlo", np.zeros(200), {"sigma": 0.01, "draws": 10})
    return table, pd.DataFrame({"laplacian": curvature, "flips": flips, "sure": sure})


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
    """Return a run with a Laplacian, and sampled changes `factor` times its prediction, within -1 and 1."""
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
    """Return another run over the points of `change_run()`, with their labels."""
    names, second_run = ["label", "correct"], change_run(points, seed=seed)
    labelled = change_run(points).points.select(names).to_pylist()
    rows = [row | label for row, label in zip(second_run.points.to_pylist(), labelled, strict=True)]
    return replace(second_run, points=pa.Table.from_pylist(rows, schema=POINTS))


def change_values(table: Table) -> dict[str, Any]:
    """Return the values of the chapter on the expected change."""
    return values_of(expected_change.CHAPTER, table)


def beside(table: Table, against: Mapping[str, Table]) -> dict[str, Any]:
    """Return the values of the chapter on other runs."""
    return values_of(other_runs.CHAPTER, table, against=against)
