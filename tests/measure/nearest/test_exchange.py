"""Which features an exchange changes, and how many suffice of a linear function."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from brittle.measure.nearest.exchange import chosen_features, ranks
from brittle.measure.nearest.norms import DISTANCES, ends_downhill, fewest
from brittle.measure.nearest.search import Response

SEEDS = range(4)


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


def test_equal_values_are_ranked_in_order() -> None:
    assert ranks(torch.tensor([[2.0, 1.0, 1.0, 3.0]])).tolist() == [[2, 0, 1, 3]]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("flipped", [True, False])
def test_an_exchange_changes_what_falls_and_no_more_than_allowed(seed: int, flipped: bool) -> None:
    """What rests stays as it is unless the number has to shrink; what is newly changed lowers the margin."""
    origin, gradient, margin = lively(seed)
    generator = torch.Generator().manual_seed(seed + 100)
    changed = torch.rand(origin.shape, generator=generator) < 0.5
    points = torch.where(changed, 1 - origin, origin)
    free = torch.rand(origin.shape, generator=generator) < 0.7
    allowed = torch.randint(1, 6, (len(origin),), generator=generator)
    ends = ends_downhill(points, gradient, 0.0, 1.0)
    response = Response(points, torch.full_like(margin, flipped, dtype=torch.bool), 8 * margin, gradient)
    chosen = chosen_features(response, origin, ends, allowed, free)
    before, after = changed.sum(dim=1), chosen.sum(dim=1)
    assert (after <= torch.maximum(allowed, torch.where(torch.tensor(flipped), 0, before))).all()
    new = chosen & ~changed
    assert (free & (gradient * (points - ends) > 0))[new].all()
    if not flipped:
        growing = before < allowed
        assert (chosen | ~changed)[growing].all()
        helps = (free & ~changed & (gradient * (points - ends) > 0)).any(dim=1)
        assert (after > before)[growing & helps].all()
        full = (before == allowed) & helps
        assert (chosen & ~changed).any(dim=1)[full].all()
        assert (after == before)[full].all()
        assert full.any()
        assert growing.any()
    else:
        assert (after <= allowed).all()
