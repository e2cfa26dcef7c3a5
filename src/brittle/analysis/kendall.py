"""Kendall's tau-b with an interval over points: the one that every part of the analysis states."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from brittle.intervals import clopper_pearson, jackknife

MIN_POINTS = 10
"""Points below which no interval of tau is given: the jackknife's law holds for many."""

FEW = 200
"""Points up to which their pairs are looked at one by one, which is faster."""


def kendall_tau(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b of two sequences: 1 for the same order, -1 for the reverse; NaN where either is constant."""
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if np.unique(first).size < 2 or np.unique(second).size < 2:
        return float("nan")
    return float(scipy.stats.kendalltau(first, second).statistic)


def tau_interval(
    first: NDArray[np.float64], second: NDArray[np.float64], tau: float, confidence: float
) -> tuple[float, float]:
    """The interval of `tau` of two sequences, `[n]` each; `margin_consistency` says what it is."""
    if first.size < MIN_POINTS or math.isnan(tau):
        return -1.0, 1.0
    if abs(tau) > 1.0 - 1e-12:
        return _bound_of_agreement(first, tau, confidence)
    left_out = _leave_one_out(first, second)
    half = float(jackknife(left_out[None, :], np.array([first.size]), confidence)[0]) / (1.0 - tau**2)
    centre = math.atanh(tau)
    return math.tanh(centre - half), math.tanh(centre + half)


def _bound_of_agreement(first: NDArray[np.float64], tau: float, confidence: float) -> tuple[float, float]:
    """The interval of `tau` where all pairs are of one kind: of `n // 2` disjoint ones, those untied count."""
    untied = row_sums(first, first).sum() / (first.size * (first.size - 1.0))
    pairs = math.floor(first.size // 2 * untied)
    share = float(clopper_pearson(pairs, pairs, confidence)[0]) if pairs else 0.0
    bound = 2.0 * share - 1.0
    return (bound, 1.0) if tau > 0.0 else (-1.0, -bound)


def _leave_one_out(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tau-b without each point in turn, `[n]`: a point takes its row and its column out of each sum."""
    products, firsts, seconds = (
        rows.sum() - 2.0 * rows for rows in (row_sums(first, second), row_sums(first, first), row_sums(second, second))
    )
    untied = np.sqrt(firsts * seconds)
    return np.divide(products, untied, out=np.zeros_like(untied), where=untied > 0.0)


def row_sums(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """`sum_j sign(x_i - x_j) sign(y_i - y_j)` for every point `i`, `[n]`, in O(n log^2 n) above `FEW` points."""
    x, y = (np.unique(values, return_inverse=True)[1].astype(np.int64) for values in (first, second))
    if x.size > FEW:
        return sums_of_many(x, y)
    return np.einsum("ij,ij->i", np.sign(x[:, None] - x), np.sign(y[:, None] - y)).astype(np.float64)


def sums_of_many(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """`row_sums` of any number of points."""
    concordant = _dominated(x, y) + _dominated(-x, -y)
    discordant = _dominated(x, -y) + _dominated(-x, y)
    return (concordant - discordant).astype(np.float64)


def _dominated(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every point, the number of points with both a smaller `x` and a smaller `y`."""
    order = np.lexsort((-y, x))  # of equal x the larger y first, so that none of them counts for another
    counts = np.empty_like(x)
    counts[order] = _smaller_before(y[order])
    return counts


def _smaller_before(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """For every entry, the number of smaller ones before it, by halves of blocks of 2, 4, 8, ... entries.

    In a block, an entry of the right half counts the entries of the left half that sort before it.
    """
    places = np.arange(values.size)
    ascending = np.lexsort((-places, values))
    counts = np.zeros_like(values)
    for level in range(max(values.size - 1, 0).bit_length()):
        half = 1 << level
        block = ascending >> (level + 1)
        inside = ascending[np.argsort(block, kind="stable")]
        right = (inside & half) > 0
        lefts = np.cumsum(~right) - (inside >> (level + 1)) * half
        counts[inside[right]] += lefts[right]
    return counts
