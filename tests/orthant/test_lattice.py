"""Lattices: each point comes once in every coordinate, and two coordinates do not move together."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from brittle.orthant.lattice import LATTICES, SHIFTS, coordinate, generating_vector, shifts

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
def test_every_coordinate_is_a_permutation(size: int) -> None:
    for factor in generating_vector(size, 6):
        assert 0 < factor < size
        assert len({index * factor % size for index in range(size)}) == size


@pytest.mark.parametrize("size", SMALL)
def test_a_smooth_periodic_product_is_integrated_almost_exactly(size: int) -> None:
    vector = np.array(generating_vector(size, 3))
    points = np.arange(size)[:, None] * vector % size / size
    values = np.prod(1 + (points**2 - points + 1 / 6), axis=1)
    assert values.mean() == pytest.approx(1, abs=2 / size)


def test_shifted_points_lie_in_the_unit_interval_and_depend_on_the_seed_alone() -> None:
    index = torch.arange(31)
    first, again, other = (shifts(31, 3, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    for place in range(3):
        points = coordinate(index, first, 31, place)
        assert points.shape == (31 * SHIFTS,)
        assert bool(((points >= 0) & (points <= 1)).all())
        assert float(points.mean()) == pytest.approx(0.5, abs=0.02)
