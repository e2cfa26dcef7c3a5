"""Lattices: each coordinate takes every value once, and they integrate well."""

from __future__ import annotations

import numpy as np
import pytest

from brittle.orthant.separation import LATTICES, generating_vector

SMALL = [size for size in LATTICES if size < 5000]


@pytest.mark.parametrize("size", LATTICES)
def test_the_root_generates_every_remainder(size: int) -> None:
    """Fermat: a primitive root has no smaller power that is 1, so no proper divisor of the order gives 1."""
    order = size - 1
    divisors = [
        order // prime
        for prime in range(2, order + 1)
        if order % prime == 0 and all(prime % d for d in range(2, prime))
    ]
    assert pow(LATTICES[size], order, size) == 1
    assert all(pow(LATTICES[size], part, size) != 1 for part in divisors)


@pytest.mark.parametrize("size", SMALL)
def test_a_smooth_periodic_product_is_integrated_almost_exactly(size: int) -> None:
    vector = np.array(generating_vector(size, 3))
    points = np.arange(size)[:, None] * vector % size / size
    values = np.prod(1 + (points**2 - points + 1 / 6), axis=1)
    assert values.mean() == pytest.approx(1, abs=2 / size)
