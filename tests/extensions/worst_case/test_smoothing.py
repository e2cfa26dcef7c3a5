"""Radii of the smoothed classifier, on problems with a known smoothed boundary, and against attacks on the vote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.bounded_networks import lively
from helpers.data_files import refused
from scipy import optimize, special, stats
from torch import Tensor, nn

import brittle
from brittle.analysis import smoothed_radius
from brittle.noise import Gaussian, Uniform
from brittle.scores import MonteCarlo, Shrinkage, Softmax

SIGMA, POINTS = 0.25, 200


def draw_points(size: int) -> Tensor:
    return torch.rand(POINTS, size, generator=torch.Generator().manual_seed(0)) * 2 - 1


@pytest.mark.parametrize(
    "score",
    [MonteCarlo(SIGMA, draws=2000, limit=None), Shrinkage(SIGMA, draws=400, limit=None)],
    ids=lambda score: score.name,
)
def test_a_linear_boundary_is_its_own_smoothed_boundary(score: Any) -> None:
    """Each radius exceeds the distance with probability 0.5%; more than 8 of 200 do in 3e-6 of all cases."""
    x, normal = draw_points(3), torch.tensor([[0.6, -0.8, 0.0]])
    classifier = brittle.Classifier(lambda rows: torch.cat([rows @ normal.T, -rows @ normal.T], 1), bounds=(-1, 1))
    radius = smoothed_radius(brittle.score(classifier, x, [score])).to_numpy()
    distance = (x @ normal.T).abs().numpy()[:, 0]
    assert (radius > distance).sum() <= 8
    inside = (distance > 0.1) & (distance < 0.4)
    assert np.median(distance[inside] - radius[inside]) < 0.1


def test_radii_stay_below_the_distance_inside_a_ball() -> None:
    """The vote changes where half of the copies leave the ball; false-fail rate as above."""
    x = draw_points(2)
    classifier = brittle.Classifier(
        lambda rows: torch.stack([0.5 - rows.norm(dim=1), rows.norm(dim=1) - 0.5], 1), (-1, 1)
    )
    radius = smoothed_radius(brittle.score(classifier, x, [MonteCarlo(SIGMA, draws=2000, limit=None)])).to_numpy()
    edge = optimize.brentq(lambda far: stats.ncx2.cdf(0.25 / SIGMA**2, 2, (far / SIGMA) ** 2) - 0.5, 0.0, 2.0)
    far = x.norm(dim=1).numpy()
    assert (radius > np.where((far < 0.5) == (far < edge), np.abs(far - edge), 0.0)).sum() <= 8
    assert (radius > 0.1).sum() > 20


def test_no_attack_changes_the_vote_inside() -> None:
    """Steps along the gradient of the share of 500 copies, and random steps, to 95% of the radius; votes of 20,000."""
    network = lively(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)), 1)
    x = draw_points(4)
    table = brittle.score(brittle.Classifier(network, bounds=(-1, 1)), x, [MonteCarlo(SIGMA, draws=2000, limit=None)])
    radius = torch.tensor(smoothed_radius(table).to_numpy(), dtype=torch.float32)
    certified = (radius > 0.05).nonzero().flatten()[:40]
    noise = SIGMA * torch.randn(500, 4, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        predicted = network(x).argmax(1)
    generator = torch.Generator().manual_seed(2)
    for point in certified.tolist():
        moved = x[point].clone().requires_grad_()
        share = network(moved + noise).softmax(1)[:, predicted[point]].mean()
        away = -torch.autograd.grad(share, moved)[0]
        directions = torch.cat([away[None], torch.randn(3, 4, generator=torch.Generator().manual_seed(point))])
        for unit in directions / directions.norm(dim=1, keepdim=True):
            copies = x[point] + 0.95 * radius[point] * unit + SIGMA * torch.randn(20_000, 4, generator=generator)
            with torch.no_grad():
                votes = network(copies).argmax(1).bincount(minlength=3)
            assert int(votes.argmax()) == int(predicted[point])


def test_it_follows_from_the_count_alone() -> None:
    """By the definition, from the number of flipped copies."""
    classifier = brittle.Classifier(lambda rows: torch.cat([rows, -rows], 1), bounds=(-1, 1))
    table = brittle.score(classifier, draw_points(1), [MonteCarlo(SIGMA, draws=100, limit=None)])
    (column,) = table.columns
    expected = SIGMA * special.ndtri(1.0 - column.rows["counted_high"].astype(float))
    assert smoothed_radius(table).tolist() == pytest.approx(np.maximum(expected, 0.0).tolist())
    assert smoothed_radius(table, column).equals(smoothed_radius(table))


def test_columns_that_cannot_certify_are_refused() -> None:
    classifier = brittle.Classifier(lambda rows: torch.cat([rows, -rows], 1), bounds=(-1, 1))
    clipped, uniform = (
        [MonteCarlo(SIGMA, draws=20, clip=True, limit=None)],
        [MonteCarlo(noise=Uniform(0.1), draws=20, limit=None)],
    )
    for scores in (clipped, uniform, [Softmax()]):
        refused("no_such_score", ".", smoothed_radius, brittle.score(classifier, draw_points(1), scores))
    table = brittle.score(classifier, draw_points(1), [MonteCarlo(noise=Gaussian(SIGMA), draws=20, limit=None)])
    model = replace(table.record.model, decision="top:2")
    refused("no_such_score", "top:2", smoothed_radius, replace(table, record=replace(table.record, model=model)))
