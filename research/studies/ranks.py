"""Rank correlations and AUC of numbers of which some are missing. What is infinite ties as the farthest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats


def spearman(one: Any, other: Any) -> float:
    """Spearman's correlation of the pairs without NaN; NaN where either number does not vary."""
    return _correlation(stats.spearmanr, one, other)[0]


def kendall(one: Any, other: Any) -> float:
    """Kendall's tau-b in the same way."""
    return _correlation(stats.kendalltau, one, other)[0]


def spearman_and_chance(one: Any, other: Any) -> tuple[float, float, int]:
    """Spearman's correlation, its two-sided p-value, and the number of pairs without NaN."""
    return _correlation(stats.spearmanr, one, other)


def _correlation(statistic: Any, one: Any, other: Any) -> tuple[float, float, int]:
    one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    there = ~np.isnan(one) & ~np.isnan(other)
    one, other = one[there], other[there]
    if min(np.unique(one).size, np.unique(other).size) < 2:
        return np.nan, np.nan, len(one)
    found = statistic(one, other)
    return float(found.statistic), float(found.pvalue), len(one)


def auc(score: NDArray[np.float64], weak: NDArray[np.bool_], fewest: int) -> float:
    """The probability that a weak point has the lower score than another, ties half; NaN with fewer of either kind.

    Points whose score is not finite are left out.
    """
    there = np.isfinite(score)
    one, other = score[there & weak], score[there & ~weak]
    if min(len(one), len(other)) < max(fewest, 1):
        return np.nan
    return float(stats.mannwhitneyu(other, one).statistic / (len(one) * len(other)))
