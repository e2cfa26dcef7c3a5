"""The robust accuracy is exact for consistent scores, and its interval holds for others.

At 99% confidence 5 misses in 500 replicates are expected; more than 17 happen by chance once in 1e5 for a correct
interval.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from brittle.errors import ParameterError
from brittle.extensions.worst_case.robust_accuracy import (
    EstimatedRobustAccuracy,
    RobustAccuracy,
    direct_robust_accuracies,
    direct_robust_accuracy,
    estimate_robust_accuracy,
)
from brittle.intervals import clopper_pearson

EPSILON, REPLICATES, MOST_MISSES = 1.5, 500, 17


def sample(size: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw margin, score (the margin with lognormal noise) and correctness, which is rarer near the boundary."""
    generator = np.random.default_rng(seed)
    margin = generator.gamma(1.5, size=size)
    correct = generator.random(size) < np.where(margin < 0.3, 0.6, 0.95)
    return margin, margin * np.exp(noise * generator.standard_normal(size)), correct


@cache
def robust_accuracy(epsilon: float) -> float:
    """Return the robust accuracy of the population of `sample`, to 0.0005."""
    margin, _, correct = sample(1_000_000, 0.0, 99)
    return float((correct & (margin > epsilon)).mean())


def estimate(margin: np.ndarray, score: np.ndarray, correct: np.ndarray, subset: Any) -> EstimatedRobustAccuracy:
    return estimate_robust_accuracy(margin, score, correct, EPSILON, subset)


# Directly


def test_the_direct_accuracy_is_that_by_hand() -> None:
    accuracy = direct_robust_accuracy([0.1, 0.2, 0.3, math.inf, None], [True, False, True, True, True], 0.2, 0.9)  # pyright: ignore[reportArgumentType] None is no number
    low, high = clopper_pearson(2, 4, 0.9)
    assert (accuracy.points, accuracy.dropped, accuracy.accuracy, accuracy.robust_accuracy) == (4, 1, 0.75, 0.5)
    assert (accuracy.low, accuracy.high) == (float(low), float(high))


def test_several_sizes_at_once_are_counted_separately() -> None:
    """A margin of epsilon is not larger than epsilon."""
    margin = np.round(np.random.default_rng(0).gamma(1.5, size=200), 1)
    margin[:3] = math.inf, math.nan, 0.0
    correct = np.where(np.arange(200) % 5 > 0, 1.0, 0.0)
    correct[7] = math.nan
    sizes = (0.0, 0.5, 1.1, 50.0)
    usable = ~np.isnan(margin) & ~np.isnan(correct)
    for size, accuracy in zip(sizes, direct_robust_accuracies(margin, correct, sizes), strict=True):
        count = sum(bool(m > size and c == 1.0) for m, c in zip(margin[usable], correct[usable], strict=True))
        low, high = clopper_pearson(count, 198, 0.99)
        share = correct[usable].mean()
        assert accuracy == RobustAccuracy(size, 198, 2, share, count / 198, float(low), float(high), 0.99)
        assert accuracy == direct_robust_accuracy(margin, correct, size)


# Algorithm 1


@pytest.mark.parametrize("seed", range(2))
def test_a_consistent_model_is_recovered_exactly(seed: int) -> None:
    """With a gap around epsilon wider than between points, any subset yields a threshold inside it."""
    margin, _, correct = sample(2000, 0.0, seed)
    margin = margin + np.where(margin > EPSILON, 1.0, 0.0)
    subset = np.random.default_rng(seed).choice(2000, 300, replace=False)
    sparse = np.full(2000, math.nan)
    sparse[subset] = margin[subset]
    answer = estimate(sparse, np.log(margin), correct, subset)
    assert answer.estimate == (correct & (margin > EPSILON)).mean()
    assert answer.estimate == answer.rectified
    assert (answer.tpr, answer.points, answer.subset_points) == (1.0, 2000, 300)
    assert answer.low <= answer.estimate <= answer.high
    assert answer.low < answer.estimate < answer.high


def test_points_without_numbers_are_left_out_and_counted() -> None:
    margin = [0.1, 0.2, 0.3, 0.4, None, None, 0.1, 0.2]
    score = [1.0, 2.0, 3.0, 4.0, 1.5, 3.5, None, 9.0]
    correct = [True, True, True, True, True, True, True, None]
    answer = estimate_robust_accuracy(margin, score, correct, 0.25, [0, 1, 2, 3, 4, 6, 7])
    assert (answer.points, answer.dropped, answer.subset_points) == (6, 2, 4)
    assert (answer.threshold, answer.estimate) == (2.5, 0.5)


@pytest.mark.parametrize(("margin", "threshold", "share"), [(math.inf, -math.inf, 0.75), (0.0, math.inf, 0.0)])
def test_a_subset_of_one_class_has_an_infinite_threshold(margin: float, threshold: float, share: float) -> None:
    correct = np.arange(40) % 4 != 0
    answer = estimate_robust_accuracy(np.full(40, margin), np.arange(40.0), correct, 0.1, np.arange(0, 40, 2))
    assert (answer.threshold, answer.estimate) == (threshold, share)
    assert answer.low <= answer.rectified <= answer.high


def test_an_empty_subset_is_a_reason() -> None:
    answer = estimate_robust_accuracy([math.nan] * 3, [1.0, 2.0, 3.0], [True] * 3, 0.1, [0, 1])
    assert answer.reason is not None
    assert math.isnan(answer.estimate)
    assert (answer.low, answer.high, answer.subset_points) == (0.0, 1.0, 0)


@pytest.mark.parametrize(("noise", "widest", "epsilon"), [(0.0, 0.13, 0.3), (0.5, 0.25, 1.5)])
def test_the_interval_covers_the_population(noise: float, widest: float, epsilon: float) -> None:
    truth = robust_accuracy(epsilon)
    answers = [
        estimate_robust_accuracy(*sample(1000, noise, seed), epsilon, np.arange(100)) for seed in range(REPLICATES)
    ]
    assert sum(not answer.low <= truth <= answer.high for answer in answers) <= MOST_MISSES
    assert np.mean([answer.high - answer.low for answer in answers]) < widest


def test_a_poor_score_biases_the_estimate_not_the_interval() -> None:
    """Algorithm 1 must find 80% of the fragile points, so that a poor score loses robust points."""
    answers = [estimate_robust_accuracy(*sample(1000, 2.0, seed), 0.3, np.arange(300)) for seed in range(100)]
    assert np.mean([answer.estimate for answer in answers]) < robust_accuracy(0.3) - 0.2
    assert np.mean([answer.rectified for answer in answers]) == pytest.approx(robust_accuracy(0.3), abs=0.02)
    assert not any(answer.low <= answer.estimate <= answer.high for answer in answers)


@pytest.mark.parametrize("subset", [[0, 5], [-1], [0.5], [[0], [1]], [True, False]])
def test_a_subset_that_is_no_set_of_positions_is_refused(subset: Any) -> None:
    with pytest.raises(ParameterError, match="positions"):
        estimate(np.ones(5), np.ones(5), np.ones(5), subset)
