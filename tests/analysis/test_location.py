"""Intervals of means with skewness and of medians: they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest

from brittle.analysis.mean_interval import median_interval, skewed_mean


def test_a_mean_without_skewness_is_students() -> None:
    values = np.concatenate([np.arange(1.0, 11.0), -np.arange(1.0, 11.0)])
    mean, low, high = skewed_mean(values, 0.99)
    assert mean == pytest.approx(0.0, abs=1e-12)
    assert high == pytest.approx(2.8609346 * values.std(ddof=1) / math.sqrt(20), rel=1e-6)
    assert low == pytest.approx(-high)
    assert skewed_mean([2.0, 2.0, math.nan], 0.99) == (2.0, -math.inf, math.inf)
    assert skewed_mean([2.0], 0.99) == (2.0, -math.inf, math.inf)


@pytest.mark.parametrize(("tail", "least"), [(0.5, 0.98), (1.0, 0.97), (1.5, 0.955)])
def test_a_mean_of_a_heavy_tail_is_covered(tail: float, least: float) -> None:
    """99% intervals of the mean of 60 log-normal points; Student's hold it in 98.4%, 95.5% and 89.3% of 20,000 samples.

    Ours hold it in 98.9%, 98.3% and 97.0%; with 4,000 samples the standard error is below 0.27 points, so chance fails
    this in less than 1 of 10,000 runs, and the seed is fixed.
    """
    generator = np.random.default_rng(5)
    truth = math.exp(tail**2 / 2)
    held = [
        low <= truth <= high
        for _, low, high in (skewed_mean(generator.lognormal(0.0, tail, 60), 0.99) for _ in range(4000))
    ]
    assert least <= np.mean(held) <= 0.998


def test_a_median_is_covered() -> None:
    """Of 4,000 conservative 95% intervals fewer than 94% hold the median in less than 1 of 400 runs; seed fixed."""
    generator = np.random.default_rng(6)
    held = [
        low <= math.log(2.0) <= high
        for _, low, high in (median_interval(generator.exponential(size=30), 0.95) for _ in range(4000))
    ]
    assert 0.94 <= np.mean(held) <= 0.99  # 0.957 by the binomial law of 30 points


def test_medians_of_infinite_values() -> None:
    assert median_interval([1.0, math.inf, math.inf], 0.5)[0] == math.inf
    assert median_interval([1.0, math.inf], 0.5)[0] == math.inf
    assert math.isnan(median_interval([-math.inf, math.inf], 0.5)[0])
    assert median_interval([], 0.99)[1:] == (-math.inf, math.inf)
    assert median_interval([1.0, 2.0], 0.99) == (1.5, -math.inf, math.inf)
