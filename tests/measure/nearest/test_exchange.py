"""How many features suffice for a linear function to fall."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from brittle.measure.nearest.norms import DISTANCES, ends_downhill, fewest

SEEDS = range(2)


def lively(seed: int, rows: int = 30, size: int = 7) -> tuple[Tensor, Tensor, Tensor]:
    """Points in [0, 1], gradients with zeros and ties among them, and margins."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(rows, size, generator=generator, dtype=torch.float64)
    gradient = torch.randint(-2, 3, (rows, size), generator=generator).double()
    return points, gradient, 2 * torch.rand(rows, generator=generator, dtype=torch.float64)


def by_subsets(point: Tensor, slope: Tensor, drop: float) -> int:
    """The fewest features whose changes inside [0, 1] lower the linear function by more than `drop`: all subsets."""
    gains = torch.maximum(slope * point, slope * (point - 1)).tolist()
    for count in range(1, len(gains) + 1):
        if any(sum(some) > drop for some in itertools.combinations(gains, count)):
            return count
    return len(gains) + 1


@pytest.mark.parametrize("seed", SEEDS)
def test_the_linearised_count_is_that_over_all_subsets(seed: int) -> None:
    points, gradient, drop = lively(seed)
    ends = ends_downhill(points, gradient, 0.0, 1.0)
    counted = fewest(gradient * (points - ends), drop)
    truth = [by_subsets(*row) for row in zip(points, gradient, drop.tolist(), strict=True)]
    assert counted.tolist() == truth
    slopes = gradient.abs().amax(dim=1)
    plane = DISTANCES["l0"].to_plane(points, gradient, drop, 0.0, 1.0)
    assert plane.tolist() == [
        float(count) if slope else float("inf") for count, slope in zip(truth, slopes, strict=True)
    ]
