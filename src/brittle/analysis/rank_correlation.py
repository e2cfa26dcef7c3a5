"""Do the cheap scores put the points in the same order as their robustness?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import kendalltau, norm

from brittle.analysis.columns import Column, columns, typical
from brittle.store.table import Table

_FIELDS = ("label", "score", "title", "points", "tau", "low", "high")


def kendall_tau(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b of two sequences: 1 for the same order, -1 for the reverse; NaN where either is constant."""
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if np.unique(first).size < 2 or np.unique(second).size < 2:
        return float("nan")
    return float(cast(Any, kendalltau(first, second)).statistic)


def rank_correlation(table: Table, scores: Sequence[Column], column: Column | None = None) -> pd.DataFrame:
    """Kendall's tau between p_robust and each of `scores`, oriented so that larger means safer.

    The interval is Fieller's, normal on the scale of `atanh(tau)` with variance `0.437 / (n - 4)`: approximate, and
    missing below 10 points.

    References:
        Tests for rank correlation coefficients, E. C. Fieller, H. O. Hartley and E. S. Pearson, 1957.

    Args:
        table: a run.
        scores: the columns to compare.
        column: the probability column to compare them with; by default the one that speaks for the run.

    Returns:
        One row per column of `scores`: `label`, `score`, `title`, `points`, `tau`, `low`, `high`.
    """
    column = column or typical(columns(table))
    if column is None:
        return pd.DataFrame(columns=_FIELDS)
    quantile = float(norm.ppf(0.5 + float(table.provenance.get("confidence") or 0.99) / 2.0))
    return pd.DataFrame([_row(score, column, quantile) for score in scores], columns=_FIELDS)


def _row(score: Column, column: Column, quantile: float) -> dict[str, object]:
    safe = score.p_robust if score.is_probability else score.value
    pairs = pd.DataFrame({"safe": safe, "robust": column.p_robust}).dropna()
    tau, half = kendall_tau(pairs["safe"], pairs["robust"]), math.nan
    if len(pairs) >= 10 and abs(tau) < 1.0:
        half = quantile * math.sqrt(0.437 / (len(pairs) - 4))
    centre = math.nan if math.isnan(half) else math.atanh(tau)
    return {
        "label": score.label,
        "score": score.score,
        "title": score.title,
        "points": len(pairs),
        "tau": tau,
        "low": math.tanh(centre - half),
        "high": math.tanh(centre + half),
    }
