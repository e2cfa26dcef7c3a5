"""Corrected means: by hand, and how often their intervals hold the truth of made-up problems."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from brittle.analysis import mean_interval, powered_mean
from brittle.errors import ParameterError

Values = NDArray[np.float64]
Estimator = Callable[[Values, np.random.Generator], Values]

ESTIMATORS: dict[str, Estimator] = {
    "right": lambda p, rng: p,
    "biased": lambda p, rng: 0.8 * p**3,
    "rarely wrong": lambda p, rng: np.where(rng.random(p.size) < 0.02, 1.0 - p, p),
    "useless": lambda p, rng: rng.random(p.size),
}


def problem(
    rng: np.random.Generator, points: int, counted: int, estimator: Estimator, a: float = 2.0, b: float = 1.0
) -> tuple[Values, Values, Values]:
    """Robustness, estimates and counts of 100 draws at some points, whose mean robustness is `a / (a + b)`."""
    p = rng.beta(a, b, points)
    counts = np.full(points, np.nan)
    chosen = rng.permutation(points)[:counted]
    counts[chosen] = rng.binomial(100, p[chosen]) / 100.0
    return p, estimator(p, rng), counts


@pytest.mark.every_other
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("points", "counted", "a", "b"), [(20, 5, 2.0, 1.0), (100, 30, 20.0, 0.4), (500, 120, 2.0, 1.0)]
)
def test_the_interval_covers(estimator: str, points: int, counted: int, a: float, b: float) -> None:
    """80 replicates at 99%; more than 5 misses would have probability below 1e-3 if coverage were 99%."""
    rng = np.random.default_rng(points)
    misses = 0
    for _ in range(80):
        _, estimates, counts = problem(rng, points, counted, ESTIMATORS[estimator], a, b)
        found = powered_mean(estimates, counts, 0.99)
        misses += not found.low <= a / (a + b) <= found.high
    assert misses <= 5


def test_the_mean_has_no_bias_whatever_the_estimates() -> None:
    """The mean error of 60 replicates within 4.5 of its standard errors: false alarm below 1e-4."""
    rng = np.random.default_rng(7)
    for estimator in ESTIMATORS.values():
        errors = []
        for _ in range(60):
            p, estimates, counts = problem(rng, 300, 60, estimator)
            errors.append(powered_mean(estimates, counts, 0.99).mean - p.mean())
        assert abs(np.mean(errors)) < 4.5 * np.std(errors) / math.sqrt(len(errors))


def test_good_estimates_narrow_the_interval_and_useless_ones_do_not_widen_it() -> None:
    rng = np.random.default_rng(8)
    _, right, counts = problem(rng, 2000, 400, ESTIMATORS["right"])
    alone = mean_interval(counts, 0.99)
    good, useless = (powered_mean(one, counts, 0.99) for one in (right, rng.random(2000)))
    assert good.high - good.low < 0.7 * (alone.high - alone.low)
    assert useless.high - useless.low <= 1.05 * (alone.high - alone.low)
    assert good.weight > 0.8
    assert useless.weight < 0.1


def test_counts_that_are_all_1_give_the_interval_of_counting() -> None:
    """No draw flipped at 20 of 100 points; the estimates are nearly 1 as well."""
    counts = np.where(np.arange(100) < 20, 1.0, np.nan)
    found = powered_mean(np.linspace(0.98, 1.0, 100), counts, 0.99)
    assert found.weight == 0.0
    assert found.low == pytest.approx(0.005 ** (1.0 / 20.0))
    assert (found.mean, found.high) == (1.0, pytest.approx(1.0))


def test_all_points_counted() -> None:
    counts = [0.9, 1.0, 0.8, 1.0]
    everyone = powered_mean([0.5] * 4, counts, 0.99)
    assert everyone[:3] == pytest.approx(mean_interval(counts, 0.99))


def test_the_order_of_points_does_not_matter() -> None:
    rng = np.random.default_rng(9)
    _, estimates, counts = problem(rng, 200, 80, ESTIMATORS["biased"])
    order = rng.permutation(200)
    mixed = powered_mean(estimates[order], counts[order], 0.99)
    assert mixed == pytest.approx(powered_mean(estimates, counts, 0.99))


def test_a_point_without_an_estimate_takes_no_part() -> None:
    found = powered_mean([0.9, np.nan, 0.8, 0.7], [0.9, 0.0, 0.7, np.nan], 0.9)
    assert found == powered_mean([0.9, 0.8, 0.7], [0.9, 0.7, np.nan], 0.9)
    nothing = powered_mean([0.9, 0.8], [np.nan, np.nan], 0.9)
    assert math.isnan(nothing.mean)
    assert math.isnan(nothing.weight)
    assert nothing[1:3] == (0.0, 1.0)


def test_what_is_no_probability_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"counts must lie between 0 and 1; found .*1\.5"):
        powered_mean([0.5, 0.5], [1.5, 0.5], 0.99)
    with pytest.raises(ParameterError, match="as many each"):
        powered_mean([0.5], [0.5, 0.5], 0.99)
