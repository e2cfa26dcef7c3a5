"""Intervals of a mean of numbers in a range cover, whatever the numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from brittle.analysis import mean_interval
from brittle.analysis.mean_interval import median_interval, skewed_mean
from brittle.errors import ParameterError
from brittle.intervals import clopper_pearson


@given(st.integers(0, 40), st.integers(1, 40))
def test_the_interval_of_zeros_and_ones_is_exact(ones: int, zeros: int) -> None:
    values = [1.0] * ones + [0.0] * zeros
    low, high = clopper_pearson(ones, len(values), 0.99)
    assert mean_interval(values, 0.99) == pytest.approx((ones / len(values), float(low), float(high)), abs=1e-9)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_the_interval_holds_the_mean_and_stays_in_the_range(values: list[float]) -> None:
    interval = mean_interval(values, 0.95)
    assert 0.0 <= interval.low <= interval.mean <= interval.high <= 1.0
    mirrored = mean_interval([1.0 - value for value in values], 0.95)
    assert (1.0 - mirrored.high, 1.0 - mirrored.low) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_the_interval_without_points_is_the_whole_range() -> None:
    assert mean_interval([float("nan")], 0.99)[1:] == (0.0, 1.0)


@pytest.mark.parametrize(("size", "a", "b"), [(3, 8.0, 0.5), (25, 0.3, 0.3)])
def test_the_interval_covers(size: int, a: float, b: float) -> None:
    """Count misses in 500 replicates at 99%; with coverage of 99% more than 13 have probability below 1e-3."""
    rng = np.random.default_rng(size)
    truth = a / (a + b)
    intervals = [mean_interval(rng.beta(a, b, size), 0.99) for _ in range(500)]
    assert sum(not interval.low <= truth <= interval.high for interval in intervals) <= 13


def test_the_exact_share_of_misses_is_at_most_the_stated_one() -> None:
    """Compute the exact share of misses over all samples of 14 points at 0, 0.13 and 1, a law that a Beta law of the
    same mean and variance misses too often."""
    size, values, law = 14, np.array([0.0, 0.127787, 1.0]), np.array([0.131, 0.6023, 0.2667])
    counts = [(i, j, size - i - j) for i in range(size + 1) for j in range(size + 1 - i)]
    intervals = [mean_interval(np.repeat(values, multiplicities), 0.99) for multiplicities in counts]
    chances = multinomial.pmf(counts, size, law)
    truth = float(values @ law)
    assert sum(chance for interval, chance in zip(intervals, chances, strict=True) if truth > interval.high) <= 0.005
    assert sum(chance for interval, chance in zip(intervals, chances, strict=True) if truth < interval.low) <= 0.005


@pytest.mark.parametrize(("values", "confidence"), [([-1.0], 0.9), ([0.5, 1.1], 0.9), ([np.inf], 0.9), ([0.5], 1.0)])
def test_invalid_values_are_refused(values: list[float], confidence: float) -> None:
    with pytest.raises(ParameterError, match="must lie between 0 and 1"):
        mean_interval(values, confidence)


def test_points_all_alike_give_a_wide_interval() -> None:
    """The weighted mean of `n` equal points and a 0 is Beta(n, 1): its quantile at 5% is the n-th root of 0.05."""
    assert mean_interval([0.9], 0.9) == pytest.approx((0.9, 0.9 * 0.05, 1.0 - 0.1 * 0.05))
    assert mean_interval([0.9] * 8, 0.9).low == pytest.approx(0.9 * 0.05**0.125)
    assert mean_interval([0.0] * 8, 0.9) == pytest.approx((0.0, 0.0, 1.0 - 0.05**0.125))


def test_a_mean_without_skewness_is_students() -> None:
    values = np.concatenate([np.arange(1.0, 11.0), -np.arange(1.0, 11.0)])
    mean, low, high = skewed_mean(values, 0.99)
    assert mean == pytest.approx(0.0, abs=1e-12)
    assert high == pytest.approx(2.8609346 * values.std(ddof=1) / math.sqrt(20), rel=1e-6)
    assert low == pytest.approx(-high)
    assert skewed_mean([2.0, 2.0, math.nan], 0.99) == (2.0, -math.inf, math.inf)
    assert skewed_mean([2.0], 0.99) == (2.0, -math.inf, math.inf)


@pytest.mark.parametrize(("tail", "coverage"), [(0.5, 0.98), (1.5, 0.955)])
def test_the_interval_of_a_heavy_tailed_mean_covers(tail: float, coverage: float) -> None:
    """99% intervals of the mean of 60 log-normal points; Student's hold it in 98.4%, 95.5% and 89.3% of 20,000 samples.

    Ours hold it in 98.9%, 98.3% and 97.0%; with 4,000 samples the standard error is below 0.27 points, so chance fails
    this in less than 1 of 10,000 runs, and the seed is fixed.
    """
    generator = np.random.default_rng(5)
    truth = math.exp(tail**2 / 2)
    covered = [
        low <= truth <= high
        for _, low, high in (skewed_mean(generator.lognormal(0.0, tail, 60), 0.99) for _ in range(4000))
    ]
    assert coverage <= np.mean(covered) <= 0.998


def test_the_interval_of_a_median_covers() -> None:
    """Fewer than 94% of 4,000 conservative 95% intervals hold the median in less than 1 of 400 runs; seed fixed."""
    generator = np.random.default_rng(6)
    covered = [
        low <= math.log(2.0) <= high
        for _, low, high in (median_interval(generator.exponential(size=30), 0.95) for _ in range(4000))
    ]
    assert 0.94 <= np.mean(covered) <= 0.99  # 0.957 by the binomial law of 30 points


def test_medians_of_infinite_values() -> None:
    assert median_interval([1.0, math.inf, math.inf], 0.5)[0] == math.inf
    assert median_interval([1.0, math.inf], 0.5)[0] == math.inf
    assert math.isnan(median_interval([-math.inf, math.inf], 0.5)[0])
    assert median_interval([], 0.99)[1:] == (-math.inf, math.inf)
    assert median_interval([1.0, 2.0], 0.99) == (1.5, -math.inf, math.inf)
