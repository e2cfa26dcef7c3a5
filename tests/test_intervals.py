"""Intervals: known values, and coverage over 2,000 replicates.

At 99% confidence 20 misses in 2,000 are expected; more than 52 happen by chance once in 1e9 for a correct interval.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import special, stats

from brittle.errors import ParameterError
from brittle.intervals import (
    bounded_mean,
    clopper_pearson,
    decided,
    jackknife,
    log_evidence_below,
    paired_proportion,
    sequence_interval,
)

REPLICATES, CONFIDENCE, MOST_MISSES = 2000, 0.99, 52


def misses(low: np.ndarray, high: np.ndarray, truth: float) -> int:
    return int(((truth < low) | (truth > high)).sum())


def test_clopper_pearson_against_scipy() -> None:
    for successes, trials in [(0, 10), (10, 10), (3, 17), (499, 1000)]:
        expected = stats.binomtest(successes, trials).proportion_ci(CONFIDENCE, method="exact")
        low, high = clopper_pearson(successes, trials, CONFIDENCE)
        assert float(low) == pytest.approx(expected.low, abs=1e-12)
        assert float(high) == pytest.approx(expected.high, abs=1e-12)


@pytest.mark.parametrize("proportion", [0.001, 0.1, 0.5, 0.97])
def test_clopper_pearson_covers(proportion: float) -> None:
    successes = np.random.default_rng(0).binomial(200, proportion, REPLICATES)
    low, high = clopper_pearson(successes, 200, CONFIDENCE)
    assert misses(low, high, proportion) <= MOST_MISSES


@pytest.mark.parametrize("proportion", [0.004, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dependence", ["same", "independent", "opposite"])
def test_paired_proportion_covers_whatever_the_dependence(proportion: float, dependence: str) -> None:
    generator = np.random.default_rng(1)
    uniforms = generator.random((REPLICATES, 100))
    second = {"same": uniforms, "independent": generator.random(uniforms.shape), "opposite": 1.0 - uniforms}[dependence]
    pairs = (uniforms < proportion).astype(int) + (second < proportion)
    low, high = paired_proportion((pairs == 1).sum(1), (pairs == 2).sum(1), 100, CONFIDENCE)
    assert misses(low, high, proportion) <= MOST_MISSES


def test_paired_proportion_holds_the_estimate() -> None:
    singles, doubles = np.meshgrid(np.arange(0, 11), np.arange(0, 11))
    valid = singles + doubles <= 10
    low, high = paired_proportion(singles[valid], doubles[valid], 10, CONFIDENCE)
    estimate = (singles[valid] + 2 * doubles[valid]) / 20
    assert bool(np.all((low <= estimate) & (estimate <= high)))


@pytest.mark.every_other
@pytest.mark.parametrize(
    ("count", "replicates", "misses_allowed"), [(2, 2000, 26), (10, 2000, 26), (50, 500, 11), (500, 250, 8)]
)
@pytest.mark.parametrize("exponent", [0.02, 0.5, 1.0, 10.0, 50.0])
def test_bounded_mean_covers(exponent: float, count: int, replicates: int, misses_allowed: int) -> None:
    """Draw powers of uniform numbers, which lean to one end or the other, and the same rounded to 0 and 1.

    A side that misses 0.5%, as it may, has more than `misses_allowed` misses once in 8e4 or less often.
    """
    values = torch.from_numpy(np.random.default_rng(count).random((replicates, count)) ** exponent)
    share = 1 - 0.5 ** (1 / exponent)
    for numbers, mean in ((values, 1 / (1 + exponent)), ((values > 0.5).double(), share)):
        low, high = bounded_mean(numbers, CONFIDENCE)
        assert int((low > mean).sum()) <= misses_allowed
        assert int((high < mean).sum()) <= misses_allowed


@pytest.mark.parametrize("count", [5, 50, 500, 5000])
def test_bounded_mean_of_equal_values_is_a_little_wide(count: int) -> None:
    exact = float(clopper_pearson(0, count, CONFIDENCE)[1])
    for value in (0.0, 1e-6):
        low, high = bounded_mean(torch.full((1, count), value, dtype=torch.float64), CONFIDENCE)
        assert exact < float(high) < 1.15 * exact
        assert 0.0 <= float(low) <= value


def test_bounded_mean_knows_small_numbers_to_their_own_digits() -> None:
    values = torch.from_numpy(np.random.default_rng(4).random((1, 100)))
    low, _ = bounded_mean(values, CONFIDENCE)
    assert float(low) > 0.3
    assert float(bounded_mean(1e-30 * values, CONFIDENCE)[0]) == pytest.approx(1e-30 * float(low), rel=1e-5)


def test_jackknife_of_a_mean_is_its_student_interval() -> None:
    groups = np.random.default_rng(3).normal(size=(1, 8))
    left_out = (groups.sum(1, keepdims=True) - groups) / 7
    half = jackknife(left_out, np.array([8]), CONFIDENCE)
    expected = stats.t.ppf(0.995, 7) * groups.std(ddof=1) / np.sqrt(8)
    assert float(half[0]) == pytest.approx(float(expected), rel=1e-10)


def test_jackknife_covers_the_mean() -> None:
    groups = np.random.default_rng(4).normal(2.0, 1.0, size=(REPLICATES, 8))
    left_out = (groups.sum(1, keepdims=True) - groups) / 7
    mean = groups.mean(1)
    half = jackknife(left_out, np.full(REPLICATES, 8), CONFIDENCE)
    assert misses(mean - half, mean + half, 2.0) <= MOST_MISSES
    assert jackknife(np.zeros((2, 1)), np.array([1, 1]), CONFIDENCE).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_confidence_out_of_range(confidence: float) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        clopper_pearson(1, 2, confidence)


@pytest.mark.parametrize("proportion", [1e-5, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_evidence_is_a_bet_on_every_trial(proportion: float) -> None:
    """Check that the evidence is a supermartingale that grows with the proportion.

    A trial changes it by a factor of mean 1 if the proportion is true, and less if the truth is larger, as it falls
    with a success.
    """
    trials, successes = (count.astype(float) for count in np.tril_indices(90))
    evidence = np.exp(log_evidence_below(successes, trials, proportion))
    hit, missed = (np.exp(log_evidence_below(successes + more, trials + 1, proportion)) for more in (1, 0))
    np.testing.assert_allclose(proportion * hit + (1 - proportion) * missed, evidence, rtol=1e-9)
    assert bool(np.all(hit <= missed))
    assert 0.999 < evidence[0] <= 1.0
    assert bool(np.all(log_evidence_below(successes, trials, proportion * 0.99) <= np.log(evidence) + 1e-12))


def walk(keep: float, draws_allowed: int, stops: Callable[[NDArray, int], NDArray]) -> tuple[float, float]:
    """Compute copy by copy the mean number of copies of a point that keeps its prediction with probability `keep`.

    The second number is its probability to stop by `draws_allowed`; `stops(flips, draws)` is the rule.
    """
    probability, mean = np.ones(1), 0.0
    for draws in range(1, draws_allowed + 1):
        mean += probability.sum()
        probability = np.append(keep * probability, 0.0) + np.append(0.0, (1 - keep) * probability)
        going = np.flatnonzero(probability > 1e-15)
        probability[going[stops(going, draws)]] = 0.0
    return mean, 1.0 - float(probability.sum())


@pytest.mark.every_other
@pytest.mark.parametrize("keep", [0.5, 0.85, 0.89, 0.9, 0.91, 0.95, 0.999, 1.0])
def test_all_intervals_of_a_sequence_together_miss_one_in_100(keep: float) -> None:
    """Compute the exact probability that any of a thousand intervals misses."""
    level = np.log(2 / (1 - CONFIDENCE))

    def misses_at(flips: NDArray, draws: int) -> NDArray:
        below = log_evidence_below(flips, draws, 1 - keep) if keep < 1 else np.full(flips.shape, -np.inf)
        return np.maximum(below, log_evidence_below(draws - flips, draws, keep)) >= level

    missed = walk(keep, 1000, misses_at)[1]
    assert missed <= 1 - CONFIDENCE
    assert missed > 0.003 or keep > 0.99


@pytest.mark.every_other
@pytest.mark.parametrize("keep", [0.5, 0.6, 0.7, 0.8, 0.85, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.999, 1.0])
def test_a_side_of_the_limit_takes_a_quarter_more_than_needed(keep: float) -> None:
    """Compare with Wald's smallest mean number of copies, `log(2 / a) / KL`, for at most 1,000 copies."""
    fewest = np.log(2 / (1 - CONFIDENCE)) / (special.rel_entr(keep, 0.9) + special.rel_entr(1 - keep, 0.1))
    mean, _ = walk(keep, 1000, lambda flips, draws: decided(flips, flips, draws, 0.9, CONFIDENCE))
    assert mean <= 1.25 * fewest < 1250


def test_the_ends_of_a_sequence_are_where_the_evidence_is() -> None:
    """Check that evidence grows beyond the share of successes, so that all outside the interval is excluded."""
    assert sequence_interval(0, 0, CONFIDENCE) == (0.0, 1.0)
    level = np.log(2 / (1 - CONFIDENCE))
    for trials in (1, 2, 9, 100, 5000):
        for successes in sorted({0, 1, trials // 3, trials - 1, trials}):
            low, high = (float(end) for end in sequence_interval(successes, trials, CONFIDENCE))
            grid = np.linspace(1e-9, 1 - 1e-9, 2001)
            below = log_evidence_below(successes, trials, grid) >= level
            above = log_evidence_below(trials - successes, trials, 1 - grid) >= level
            assert np.array_equal(below & (grid > successes / trials), grid >= high)
            assert np.array_equal(above & (grid < successes / trials), grid <= low)


def test_ends_do_not_depend_on_those_that_were_looked_up_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look up old and new ends, more than the cache holds."""
    successes = np.arange(41)
    expected = sequence_interval(successes, 40, CONFIDENCE)
    monkeypatch.setattr("brittle.intervals._UPPER_ENDS", {})
    monkeypatch.setattr("brittle.intervals.MOST_ENDS", 5)
    for count in range(1, 42):
        low, high = sequence_interval(successes[:count], 40, CONFIDENCE)
        assert np.array_equal(low, expected[0][:count])
        assert np.array_equal(high, expected[1][:count])


def test_what_is_decided_lies_outside_the_interval() -> None:
    rng = np.random.default_rng(3)
    draws = rng.integers(1, 400, 3000)
    flips = rng.binomial(draws, rng.random(3000))
    for limit in (0.5, 0.9, 0.99):
        low, high = sequence_interval(flips, draws, CONFIDENCE)
        outside = (high <= 1.0 - limit) | (low >= 1.0 - limit)
        assert np.array_equal(decided(flips, flips, draws, limit, CONFIDENCE), outside)
        assert 0 < int(outside.sum()) < 3000
