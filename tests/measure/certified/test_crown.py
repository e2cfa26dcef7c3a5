"""Bounds hold all logits."""

from __future__ import annotations

import pytest
import torch
from helpers.bounded_networks import CASES, classifier_of, interval_bounds, logit_bounds, on_sphere, traced
from helpers.problems import inputs

from brittle.measure.certified.crown import margin_bounds
from brittle.measure.certified.proof import leads
from brittle.measure.certified.region import Enclosure, Region
from brittle.model.bounds import Bounds


@pytest.mark.every_other
@pytest.mark.parametrize(("family", "seed", "norm"), CASES)
def test_bounds_hold_all_logits_and_relaxation_is_the_tighter(family: str, seed: int, norm: str) -> None:
    points = inputs(3, seed=seed).double()
    network = traced(classifier_of(family, seed), points)
    radii = torch.full((3,), 0.1 if norm == "linf" else 0.5, dtype=torch.float64)
    ball = Region.around(points, radii, norm, Bounds.of((0.0, 1.0)))
    boxes = interval_bounds(network, Enclosure(points + ball.box.lower, points + ball.box.upper))
    crown = logit_bounds(network, ball)
    # Where relaxation gains nothing, both are the same sum, added up in another order.
    assert (crown.lower >= boxes.lower - 1e-12 * boxes.lower.abs()).all()
    assert (crown.upper <= boxes.upper + 1e-12 * boxes.upper.abs()).all()
    share = 1.0 if family == "pooled" else 0.9
    assert (crown.upper - crown.lower).mean() < share * (boxes.upper - boxes.lower).mean()
    weights, constants = leads(network(points).argmax(dim=1), 4)
    margins = [margin_bounds(network, ball, weights, constants, tighten=tighten) for tighten in (True, False)]
    assert (margins[0].functions >= margins[1].functions).all()
    generator = torch.Generator().manual_seed(seed)
    for _ in range(50):
        directions = torch.randn(points.shape, generator=generator, dtype=torch.float64)
        logits = network((points + on_sphere(directions, radii, norm)).clamp(0, 1))
        assert (logits >= crown.lower - 1e-9).all()
        assert (logits <= crown.upper + 1e-9).all()
        given = torch.einsum("bkl,bl->bk", weights, logits)
        for found in margins:
            assert (given >= found.lower - 1e-9).all()
            assert (found.reach < radii[:, None]).equal(found.lower <= 0)
