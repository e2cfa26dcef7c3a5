"""Rank correlations with an interval: it equals the jackknife, and it covers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from brittle.analysis.correlation import kendall, kendall_tau, paired, spearman


@pytest.mark.parametrize("ties", [False, True])
def test_the_interval_is_the_jackknife_over_points(ties: bool) -> None:
    """Leave out each of up to 50 points, here by SciPy, on the scale of atanh."""
    x, y = np.random.default_rng(0).normal(size=(2, 25))
    y += x
    if ties:
        x, y = np.round(x), np.round(y)
    for correlation, slow in ((spearman(x, y, 0.99), spearmanr), (kendall(x, y, 0.99), kendalltau)):
        assert correlation.value == pytest.approx(slow(x, y).statistic)  # pyright: ignore[reportAttributeAccessIssue] SciPy says less than it gives
        left_out = np.array([slow(np.delete(x, i), np.delete(y, i)).statistic for i in range(25)])  # pyright: ignore[reportAttributeAccessIssue] SciPy says less than it gives
        error = math.sqrt(24 / 25 * ((left_out - left_out.mean()) ** 2).sum())
        half = 2.79694 * error / (1.0 - correlation.value**2)
        assert math.atanh(correlation.high) - math.atanh(correlation.value) == pytest.approx(half, rel=1e-4)
        assert math.atanh(correlation.value) - math.atanh(correlation.low) == pytest.approx(half, rel=1e-4)


def test_the_interval_of_a_rank_correlation_covers() -> None:
    """99% intervals of normal pairs, whose rank correlation is `6 / pi asin(r / 2)`: 80 samples, 6 misses at most.

    A right interval misses more often in fewer than 1 of 10,000 runs; one of half the width in 99 of 100.
    """
    correlation, points, generator = 0.9, 60, np.random.default_rng(7)
    truth, missed, halved = 6.0 / math.pi * math.asin(correlation / 2.0), 0, 0
    for _ in range(80):
        x, noise = generator.normal(size=(2, points))
        interval = spearman(x, correlation * x + math.sqrt(1.0 - correlation**2) * noise, 0.99)
        missed += not interval.low <= truth <= interval.high
        halved += not (interval.low + interval.value) / 2.0 <= truth <= (interval.high + interval.value) / 2.0
    assert missed <= 6 < halved


def test_the_ends_of_a_correlation() -> None:
    x = np.arange(40.0)
    rising, falling = spearman(x, x**3, 0.99), spearman(x, -x, 0.99)
    assert (rising.value, rising.high, falling.value, falling.low) == pytest.approx((1.0, 1.0, -1.0, -1.0))
    assert 0.0 < rising.low < 1.0
    assert falling.high == pytest.approx(-rising.low)
    assert math.isnan(spearman(x, np.ones(40), 0.99).value)
    assert spearman([], [], 0.99)[2:4] == (-1.0, 1.0)
    assert spearman(x[:5], x[:5], 0.99)[2:4] == (-1.0, 1.0)


def test_kendall_tau_of_orders() -> None:
    assert kendall_tau([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1.0)
    assert kendall_tau([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1.0)
    assert kendall_tau([1, 2, 3], [1, 2, np.inf]) == pytest.approx(1.0)
    assert np.isnan(kendall_tau([1, 1, 1], [1, 2, 3]))
    assert np.isnan(kendall_tau([1], [1]))


def test_points_without_a_number_are_left_out_and_counted() -> None:
    (margin, score), dropped = paired(margin=[0.1, None, math.inf, math.nan], score=[1.0, 2.0, 3.0, 4.0])  # pyright: ignore[reportArgumentType] None is no number
    assert (margin.tolist(), score.tolist(), dropped) == ([0.1, math.inf], [1.0, 3.0], 2)
