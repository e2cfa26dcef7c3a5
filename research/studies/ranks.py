"""Rank correlations and AUC of numbers of which some are missing. What is infinite ties as the farthest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats


def spearman(x: Any, y: Any) -> float:
    """Spearman's correlation of the pairs without NaN; NaN where either number does not vary."""
    return _correlation(stats.spearmanr, x, y)[0]


def kendall(x: Any, y: Any) -> float:
    """Kendall's tau-b in the same way."""
    return _correlation(stats.kendalltau, x, y)[0]


def spearman_and_chance(x: Any, y: Any) -> tuple[float, float, int]:
    """Spearman's correlation, its two-sided p-value, and the number of pairs without NaN."""
    return _correlation(stats.spearmanr, x, y)


def _correlation(statistic: Any, x: Any, y: Any) -> tuple[float, float, int]:
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    present = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[present], y[present]
    if min(np.unique(x).size, np.unique(y).size) < 2:
        return np.nan, np.nan, len(x)
    result = statistic(x, y)
    return float(result.statistic), float(result.pvalue), len(x)


def auc(score: NDArray[np.float64], weak: NDArray[np.bool_], fewest: int) -> float:
    """Return the probability that a weak point has the lower score, ties half; NaN with fewer of either kind.

    Points whose score is not finite are left out.
    """
    usable = np.isfinite(score)
    weak_scores, strong_scores = score[usable & weak], score[usable & ~weak]
    if min(len(weak_scores), len(strong_scores)) < max(fewest, 1):
        return np.nan
    return float(stats.mannwhitneyu(strong_scores, weak_scores).statistic / (len(weak_scores) * len(strong_scores)))
