"""How is robustness distributed over the points, by noise level and estimator?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from brittle.analysis.columns import largest_budgets
from brittle.analysis.mean_interval import mean_interval
from brittle.store.columns import Column, Scored

FRAGILE = 0.01
"""A prediction whose flip probability exceeds this counts as fragile in summaries."""

_SUMMARY = (
    "sigma", "noise", "estimator", "score", "budget", "points", "mean", "low", "high", "q05", "median", "q95",
    "fragile",
)  # fmt: skip
_HISTOGRAM = ("sigma", "noise", "estimator", "score", "budget", "start", "end", "points", "share")


def distribution(table: Scored) -> pd.DataFrame:
    """Summary of p_robust for each noise setting and estimator, at its largest budget.

    Args:
        table: a run.

    Returns:
        `sigma`, `noise`, `estimator`, `score`, `budget`, `points` with a value, `mean` with its interval `low`, `high`
        (see `mean_interval`), the quantiles `q05`, `median`, `q95`, and `fragile`, the share of points whose flip
        probability exceeds `FRAGILE`.
    """
    confidence = table.record.confidence
    rows = [_summary(column, confidence) for column in _charted_columns(table)]
    return pd.DataFrame(rows, columns=_SUMMARY).astype({"budget": "Int64"})


def histogram(table: Scored, bins: int = 20) -> pd.DataFrame:
    """Counts of p_robust in equal bins of [0, 1], for each noise setting and estimator at its largest budget.

    Args:
        table: a run.
        bins: number of bins.

    Returns:
        `sigma`, `noise`, `estimator`, `score`, `budget`, the bin's `start` and `end`, `points` in it and their `share`.
    """
    frames = [_histogram(column, bins) for column in _charted_columns(table)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=_HISTOGRAM)


def _charted_columns(table: Scored) -> Sequence[Column]:
    found = [column for column in largest_budgets(table.columns) if column.value.notna().any()]
    return sorted(found, key=lambda column: (column.setting.sigma or 0.0, column.setting.noise))


def _identity(column: Column) -> dict[str, object]:
    return {
        "sigma": column.setting.sigma,
        "noise": column.setting.noise,
        "estimator": column.variant,
        "score": column.score,
        "budget": column.draws,
    }


def _summary(column: Column, confidence: float) -> dict[str, object]:
    p_robust = column.p_robust.dropna()
    mean = mean_interval(p_robust, confidence)
    return _identity(column) | {
        "points": len(p_robust),
        **mean._asdict(),
        "q05": p_robust.quantile(0.05),
        "median": p_robust.median(),
        "q95": p_robust.quantile(0.95),
        "fragile": (column.value.dropna() > FRAGILE).mean(),
    }


def _histogram(column: Column, bins: int) -> pd.DataFrame:
    p_robust = column.p_robust.dropna()
    counts, edges = np.histogram(p_robust, bins=bins, range=(0.0, 1.0))
    shares = {"start": edges[:-1], "end": edges[1:], "points": counts, "share": counts / len(p_robust)}
    frame = pd.DataFrame(_identity(column) | shares, columns=_HISTOGRAM)
    return frame.astype({"sigma": "float64", "budget": "Int64"})  # of one type in all frames, also without a value
