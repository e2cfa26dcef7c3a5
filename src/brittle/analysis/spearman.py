"""Do two numbers rank the points alike, and how sure is that?"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brittle.analysis.kendall import MIN_POINTS, row_sums
from brittle.analysis.margin_consistency import margin_consistency
from brittle.analysis.paired import paired
from brittle.intervals import check_confidence, jackknife


class Spearman(NamedTuple):
    """Spearman's correlation of the ranks, `rho`, over `points`, and its interval; NaN where either is constant."""

    points: int
    rho: float
    low: float
    high: float


def spearman(first: ArrayLike, second: ArrayLike, confidence: float) -> Spearman:
    r"""Spearman's correlation of two numbers per point, with an interval over points.

    $$\rho = \frac{\sum_j r_j s_j}{\sqrt{\sum_j r_j^2 \sum_j s_j^2}}, \qquad
    r_j = \sum_k \operatorname{sign}(x_j - x_k), \quad s_j = \sum_k \operatorname{sign}(y_j - y_k).$$

    The interval is Student's, on the scale of `atanh(rho)`, from the jackknife over points: without point `i` the sums
    are those of `r_j - sign(x_j - x_i)`, all of them in O(n log^2 n). Where the order is the same (or the reverse)
    throughout, the jackknife sees no variation; the bound is then that of Kendall's tau, carried over by
    `rho >= (3 tau - 1) / 2` (below tau = 0, `(tau^2 + 2 tau - 1) / 2`). Below 10 points the interval is the whole
    range.

    Validity: the interval covers the sampling of points, drawn independently, to first order in `1 / n`; error of the
    values themselves moves the correlation towards 0.

    References:
        The proof and measurement of association between two things, Charles Spearman, 1904.
        Inversions and rank correlation coefficients, James Durbin and Alan Stuart, 1951.
        Jackknifing U-statistics, James N. Arvesen, 1969.

    Args:
        first: `[n]`; NaN or None is left out.
        second: `[n]`; likewise.
        confidence: two-sided coverage, such as 0.99.

    Raises:
        ParameterError: the arrays differ in length, or the confidence is not between 0 and 1.

    Example:
        >>> spearman([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0], 0.99).rho
        0.8
    """
    check_confidence(confidence)
    (x, y), _ = paired(first=first, second=second)
    r, s = sign_sums(np.ones_like(x), x), sign_sums(np.ones_like(y), y)
    untied = math.sqrt(float((r * r).sum()) * float((s * s).sum()))
    if untied == 0.0:
        return Spearman(x.size, math.nan, -1.0, 1.0)
    rho = float((r * s).sum()) / untied
    if x.size < MIN_POINTS:
        return Spearman(x.size, rho, -1.0, 1.0)
    if abs(rho) > 1.0 - 1e-12:
        return Spearman(x.size, rho, *_bounds_of_agreement(x, y, confidence))
    half = float(jackknife(leave_one_out(x, y)[None, :], np.array([x.size]), confidence)[0]) / (1.0 - rho**2)
    centre = math.atanh(rho)
    return Spearman(x.size, rho, math.tanh(centre - half), math.tanh(centre + half))


def leave_one_out(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman's correlation without each point in turn, `[n]`; 0 where the others are constant."""
    products, firsts, seconds = _products_without(x, y), _products_without(x, x), _products_without(y, y)
    untied = np.sqrt(firsts * seconds)
    return np.divide(products, untied, out=np.zeros_like(untied), where=untied > 0.0)


def sign_sums(weights: NDArray[np.float64], keys: NDArray[np.float64]) -> NDArray[np.float64]:
    """`sum_j w_j sign(k_i - k_j)` for every point `i`, `[n]`, in O(n log n)."""
    group = np.unique(keys, return_inverse=True)[1]
    sums = np.bincount(group, weights=weights)
    until = np.cumsum(sums)
    below, above = until - sums, sums.sum() - until
    return (below - above)[group]


def _products_without(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """`sum_j r_j s_j` of the others without each point `i` in turn, `[n]`: it takes a sign out of every factor."""
    r, s = sign_sums(np.ones_like(x), x), sign_sums(np.ones_like(y), y)
    return (r * s).sum() - r * s + sign_sums(r, y) + sign_sums(s, x) + row_sums(x, y)


def _bounds_of_agreement(x: NDArray[np.float64], y: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    order = margin_consistency(x, y, confidence)
    return (_least(order.low), 1.0) if order.tau > 0.0 else (-1.0, -_least(-order.high))


def _least(tau: float) -> float:
    """The smallest correlation of ranks that a tau allows."""
    return (3.0 * tau - 1.0) / 2.0 if tau >= 0.0 else (tau**2 + 2.0 * tau - 1.0) / 2.0
