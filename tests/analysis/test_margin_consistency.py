"""Margin consistency: known orders, and coverage.

At 99% confidence 1.2 misses in 120 replicates are expected; more than 9 happen by chance less than once in 1e5 for a
correct interval. Intervals of half the width miss a fifth of the time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from brittle.analysis import equidistance, isometry, margin_consistency
from brittle.errors import ParameterError

REPLICATES, MOST_MISSES = 120, 9


def copula(rho: float, *shape: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a Gaussian copula, whose tau is `2 / pi asin(rho)`."""
    first, other = np.random.default_rng(seed).standard_normal((2, *shape))
    return np.exp(first), rho * first + math.sqrt(1.0 - rho**2) * other


# Tau


def test_the_same_order_is_perfect() -> None:
    margin = np.random.default_rng(0).gamma(2.0, size=50)
    same, reverse = margin_consistency(margin, np.log(margin)), margin_consistency(margin, -margin)
    assert (same.tau, same.high, same.points) == (pytest.approx(1.0), 1.0, 50)
    assert same.low == pytest.approx(2.0 * 0.005 ** (1 / 25) - 1.0)
    assert (reverse.tau, reverse.low, reverse.high) == (pytest.approx(-1.0), -1.0, pytest.approx(-same.low))


def test_infinite_margins_tie_as_the_largest() -> None:
    margin, score = copula(0.7, 60)
    found = margin_consistency(np.where(margin > 1.5, np.inf, margin), score)
    assert found == margin_consistency(np.minimum(margin, 1.5), score)
    assert found.points == 60


def test_missing_numbers_are_left_out_and_counted() -> None:
    found = margin_consistency([0.1, None, 0.3, math.nan, 0.4], [1.0, 2.0, None, 3.0, 2.0])  # pyright: ignore[reportArgumentType] None is no number
    assert (found.points, found.dropped, found.tau) == (2, 3, 1.0)
    assert (found.low, found.high) == (-1.0, 1.0)


@pytest.mark.parametrize("margin", [[], [0.5], [math.inf] * 20])
def test_nothing_to_order(margin: list[float]) -> None:
    found = margin_consistency(margin, np.arange(len(margin)))
    assert math.isnan(found.tau)
    assert (found.low, found.high) == (-1.0, 1.0)


@pytest.mark.parametrize("rho", [0.6, 0.95])
def test_the_interval_covers(rho: float) -> None:
    truth = 2.0 / math.pi * math.asin(rho)
    found = [margin_consistency(*pair) for pair in zip(*copula(rho, REPLICATES, 40, seed=1), strict=True)]
    assert sum(not one.low <= truth <= one.high for one in found) <= MOST_MISSES
    halved = [((one.low + one.tau) / 2.0, (one.high + one.tau) / 2.0) for one in found]
    assert sum(not low <= truth <= high for low, high in halved) > MOST_MISSES
    assert np.mean([one.high - one.low for one in found]) < 0.65


# Equidistance


@pytest.mark.parametrize(("norm", "distance"), [("l2", math.sqrt(2.0)), ("linf", 2.0)])
def test_a_simplex_is_equidistant(norm: str, distance: float) -> None:
    found = equidistance(np.eye(5), norm)
    assert (found.pairs, found.mean, found.low, found.high) == (10, *[pytest.approx(distance)] * 3)
    assert (found.std, found.variation) == pytest.approx((0.0, 0.0), abs=1e-15)


def test_equidistance_by_hand() -> None:
    found = equidistance([[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]], "l2")
    assert (found.low, found.high, found.mean) == (3.0, 5.0, 4.0)
    assert found.std == pytest.approx(math.sqrt(2.0 / 3.0))
    assert found.variation == pytest.approx(found.std / 4.0)
    assert equidistance([[0.0, 0.0], [3.0, 4.0]], "linf").mean == 7.0


@pytest.mark.parametrize(("weight", "norm"), [([1.0, 2.0], "l2"), ([[1.0, 2.0]], "l2"), (np.eye(3), "l3")])
def test_equidistance_misuse(weight: Any, norm: str) -> None:
    with pytest.raises(ParameterError, match=r"found|no norm is called"):
        equidistance(weight, norm)


# Isometry


def test_an_isometry_up_to_scale() -> None:
    distance = np.random.default_rng(0).gamma(2.0, size=30)
    found = isometry(distance, 7.0 * distance)
    assert (found.pearson, found.spearman, found.kendall) == pytest.approx((1.0, 1.0, 1.0))
    assert (found.kappa_low, found.kappa, found.kappa_high) == pytest.approx((7.0, 7.0, 7.0))
    assert isometry(distance, np.exp(distance)).pearson < 0.95
    assert isometry(distance, np.exp(distance)).kendall == pytest.approx(1.0)


def test_isometry_leaves_out_what_was_not_found() -> None:
    found = isometry([1.0, 2.0, math.inf, None, 0.0], [2.0, 5.0, 1.0, 1.0, 0.0])  # pyright: ignore[reportArgumentType] None is no number
    assert (found.points, found.dropped, found.kappa) == (3, 2, 2.25)
