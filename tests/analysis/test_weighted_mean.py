"""Quantiles of means with random weights agree with their law."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import beta

from brittle.analysis.weighted_mean import MOST, lower_quantiles

TAILS = np.array([0.2, 0.05, 0.005, 1e-6, 1e-12])


def share_below(values: list[Fraction], t: float) -> float:
    """Compute the probability of a weighted mean of at most `t`, of different numbers and a 0, by divided differences.

    `1 - sum_{x_i > t} (x_i - t)^n / prod_{j != i} (x_i - x_j)`, in whole numbers.
    """
    numbers, at = [*values, Fraction(0)], Fraction(t)
    terms = [
        (x - at) ** len(values) / prod(x - y for j, y in enumerate(numbers) if j != i)
        for i, x in enumerate(numbers)
        if x > at
    ]
    return float(1 - sum(terms))


@given(st.sets(st.integers(1, 1000), min_size=1, max_size=20))
def test_quantiles_of_different_numbers(thousandths: set[int]) -> None:
    values = [Fraction(number, 1000) for number in sorted(thousandths)]
    quantiles = lower_quantiles(np.array(values, dtype=np.float64), TAILS)
    assert [share_below(values, t) for t in quantiles] == pytest.approx(TAILS.tolist(), rel=0.01, abs=0.0)


LAWS: dict[str, Callable[[np.random.Generator], NDArray[np.float64]]] = {
    "flips of a robust network": lambda rng: ndtr(-6.0 - 2.0 * rng.standard_normal(150)),
    "of any size": lambda rng: 10.0 ** -rng.uniform(0.0, 15.0, 150),
    "rare": lambda rng: rng.beta(0.1, 3.0, 150),
}


@pytest.mark.every_other
@pytest.mark.parametrize("law", LAWS)
def test_quantiles_of_many_numbers_of_any_size(law: str) -> None:
    values = [Fraction(number) for number in sorted({*np.round(LAWS[law](np.random.default_rng(1)), 25).tolist()})]
    assert len(values) > MOST
    quantiles = lower_quantiles(np.array(values, dtype=np.float64), TAILS)
    assert [share_below(values, t) for t in quantiles] == pytest.approx(TAILS.tolist(), rel=0.01, abs=0.0)


@pytest.mark.parametrize(("ones", "zeros"), [(1, 0), (1, 9), (7, 3), (300, 700), (1000, 0)])
def test_quantiles_of_zeros_and_ones(ones: int, zeros: int) -> None:
    quantiles = lower_quantiles(np.repeat([1.0, 0.0], [ones, zeros]), TAILS)
    assert quantiles == pytest.approx(beta.ppf(TAILS, ones, zeros + 1), rel=2e-4)
