"""Means of groups are told apart where they differ, and seldom where they do not, whatever else differs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kruskal

from brittle.analysis import mean_differences
from brittle.analysis.mean_interval import mean_interval

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

MEAN = 0.9
LAWS: tuple[Draw, ...] = (
    lambda rng, size: np.full(size, MEAN),
    lambda rng, size: (rng.random(size) < MEAN).astype(np.float64),
    lambda rng, size: rng.beta(18.0, 2.0, size),
    lambda rng, size: rng.binomial(50, rng.beta(0.9, 0.1, size)) / 50.0,
)
"""Laws of one mean that have nothing else in common."""


def test_a_pair_differs_where_its_interval_says_so() -> None:
    """The p-value of two groups is the level at which the interval of the difference reaches 0, found by bisection."""
    rng = np.random.default_rng(0)
    first, second = rng.beta(2.0, 3.0, 40), rng.beta(3.0, 2.0, 60)
    inside, outside = 1.0 - 1e-12, 0.5
    for _ in range(60):
        middle = (inside + outside) / 2.0
        low, high = (mean_interval(group, middle) for group in (first, second))
        apart = (high.mean - low.mean) ** 2 > (low.high - low.mean) ** 2 + (high.mean - high.low) ** 2
        inside, outside = (inside, middle) if apart else (middle, outside)
    assert 1.0 - outside <= mean_differences([first, second], 0.99).p_value <= 1.34 * (1.0 - outside)


def test_which_groups_may_be_the_least_and_the_most() -> None:
    low, middle, high = [0.1, 0.2] * 30, [0.5, 0.6] * 30, [0.8, 0.9] * 30
    assert mean_differences([middle, high, low], 0.99)[1:] == ((2,), (1,))
    assert mean_differences([low, high, low], 0.99)[1:] == ((0, 2), (1,))
    few = [0.5, 0.6]
    assert mean_differences([low, few, high], 0.99)[1:] == ((0, 1), (1, 2))


def test_without_two_groups_nothing_differs() -> None:
    assert np.isnan(mean_differences([[0.5] * 9], 0.99).p_value)
    assert mean_differences([], 0.99)[1:] == ((), ())
    assert mean_differences([[1.0] * 50, [1.0] * 50], 0.99).p_value == 1.0


def test_equal_means_are_seldom_told_apart_however_unlike_their_laws() -> None:
    """150 replicates at 1%: more than 7 that differ would have probability below 1e-3; ranks tell most apart."""
    rng = np.random.default_rng(2)
    problems = [[law(rng, size) for law, size in zip(LAWS, (50, 200, 20, 100), strict=True)] for _ in range(150)]
    assert sum(mean_differences(groups, 0.99).p_value < 0.01 for groups in problems) <= 7
    assert sum(kruskal(*groups).pvalue < 0.01 for groups in problems) > 125
