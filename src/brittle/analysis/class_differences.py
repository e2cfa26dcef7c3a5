"""Do the means of several groups differ at all, and which of them may be the least?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brittle.analysis.mean_interval import mean_ends
from brittle.intervals import check_confidence

TAILS = np.geomspace(0.5, 1e-15, 121)
"""Shares of misses at which intervals are compared: a p-value is at most a third larger than it need be."""


class Differences(NamedTuple):
    """Which means of several groups differ.

    Attributes:
        p_value: that means differ at all, corrected for the number of pairs; NaN with fewer than two groups.
        least: places of the groups that may have the smallest mean; all of them where nothing differs.
        most: places of those that may have the largest.
    """

    p_value: float
    least: tuple[int, ...]
    most: tuple[int, ...]


def mean_differences(groups: Sequence[ArrayLike], confidence: float) -> Differences:
    r"""Tests that the means of the populations of all groups are equal, pair by pair, whatever else differs.

    Two means differ at the level `a` where the interval of their difference at confidence `1 - a` excludes 0,

    $$(m_j - m_i)^2 > (u_i - m_i)^2 + (m_j - l_j)^2 \qquad (m_i < m_j),$$

    with `l` and `u` the ends of `mean_interval`. The p-value of the pair is the smallest such level. The p-values of
    the pairs are corrected by Holm's method, so that some pair of equal means is taken for different with probability
    at most `a`, however many pairs there are. A group may have the smallest mean if no other one is surely smaller.

    Validity: numbers in [0, 1], drawn independently. The groups may differ in size and spread, be skewed or hold a
    single value, for which an analysis of variance or a test of ranks would find too many differences.

    References:
        A simple sequentially rejective multiple test procedure, Sture Holm, 1979.
        Construction of confidence limits about effect measures, Guang Yong Zou and Allan Donner, 2008.
        Multiple comparisons: theory and methods, Jason Hsu, 1996, chapter 4.

    Args:
        groups: at least one number in [0, 1] each, without NaN.
        confidence: 1 less the level at which groups are told apart.

    Raises:
        ParameterError: the confidence is not between 0 and 1.

    Example:
        >>> mean_differences([[0.1] * 20, [0.9] * 20, [0.1, 0.9] * 10], 0.99).least
        (0,)
    """
    check_confidence(confidence)
    every = tuple(range(len(groups)))
    if len(groups) < 2:
        return Differences(float("nan"), every, every)
    above = _above([np.asarray(group, dtype=np.float64) for group in groups])
    pairs = len(groups) * (len(groups) - 1) // 2
    shown = _holm(above, 1.0 - confidence, pairs)
    return Differences(
        min(1.0, pairs * float(above.min())),
        tuple(place for place in every if not shown[place].any()),
        tuple(place for place in every if not shown[:, place].any()),
    )


def _above(groups: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The p-value that group `j` has a larger mean than group `i`, `[j, i]`, uncorrected; 1 where it has not."""
    means = np.array([group.mean() for group in groups])
    ends = np.array([mean_ends(group, TAILS) for group in groups])  # [groups, 2, tails]
    apart = np.maximum(means[:, None] - means, 0.0) ** 2
    found = np.ones_like(apart)
    for tail, below, over in zip(TAILS, (means[:, None] - ends[:, 0]).T, (ends[:, 1] - means[:, None]).T, strict=True):
        clear = apart > below[:, None] ** 2 + over**2
        if not clear.any():
            break
        found[clear] = 2.0 * tail
    return found


def _holm(p_values: NDArray[np.float64], level: float, pairs: int) -> NDArray[np.bool_]:
    """Which p-values are rejected at `level`, of `pairs` tests."""
    ordered = np.sort(p_values, axis=None)[:pairs]
    kept = ordered * (pairs - np.arange(pairs)) > level
    rejected = int(np.argmax(kept)) if kept.any() else pairs
    return p_values <= (ordered[rejected - 1] if rejected else -1.0)
