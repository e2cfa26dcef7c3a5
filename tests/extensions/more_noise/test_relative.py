"""Noise relative to the point: its size is that of the point, and linear models have exact values."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.laws import MANY_ROWS, estimate

import brittle
from brittle.errors import ParameterError
from brittle.noise import Decibels, Relative, Stream
from brittle.scores import Moments, MonteCarlo, RareEvent, Shrinkage, Taylor

SIZE, DRAWS = 8, 2000
relative_noises = pytest.mark.parametrize("noise", [Relative(0.3), Decibels(6.0)], ids=lambda noise: noise.name)

SIZES = torch.tensor([0.05, 0.1, 0.4, 1.0, 2.0, 3.0], dtype=torch.float64)
POINTS = SIZES[:, None] * torch.randn(6, SIZE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def network() -> torch.nn.Linear:
    linear = torch.nn.Linear(SIZE, 2, dtype=torch.float64)
    weights = torch.randn(2, SIZE + 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(weights[:, :-1])
        linear.bias.copy_(0.3 * weights[:, -1])
    return linear


CLASSIFIER = brittle.Classifier(network(), bounds=(-10, 10))


def truth(share: float) -> torch.Tensor:
    """Return `Phi(-m / s)`, with the margin `m` and `s = share rms(x) |w|` from the definitions."""
    weight, bias = (parameter.detach().diff(dim=0)[0] for parameter in network().parameters())
    spread = share * POINTS.square().mean(dim=1).sqrt() * weight.norm()
    return 0.5 * torch.special.erfc((POINTS @ weight + bias).abs() / spread / math.sqrt(2.0))


@relative_noises
def test_draws_have_the_size_of_the_point(noise: Relative) -> None:
    """Means of 2,000 draws at 6 points are within 6 standard errors but once in 1e7, variances likewise."""
    draws_by_point = Stream(noise, POINTS, list("abcdef"), 0, "test").draw(DRAWS)
    for draws, point in zip(draws_by_point, POINTS, strict=True):
        variance = noise.sigma**2 * float(point.square().mean())
        assert float(draws.mean(dim=0).abs().max()) <= 6 * math.sqrt(variance / DRAWS)
        expected = variance * torch.eye(SIZE, dtype=torch.float64)
        assert float((draws.T @ draws / DRAWS - expected).abs().max()) <= 6 * variance * math.sqrt(2.0 / DRAWS)
    assert not Stream(noise, torch.zeros(1, SIZE), ["a"], 0, "test").draw(3).any()


def test_the_draws_of_a_point_do_not_depend_on_its_neighbours() -> None:
    together = Stream(Relative(0.3), POINTS, list("abcdef"), 0, "test")
    together.keep([4, 1])
    alone = Stream(Relative(0.3), POINTS[1:2], ["b"], 0, "test")
    assert torch.equal(together.draw(3)[1], alone.draw(3)[0])


@relative_noises
@pytest.mark.parametrize("kind", [MonteCarlo, Shrinkage, Moments, RareEvent], ids=lambda kind: kind.name)
def test_scores_hold_the_truth(kind, noise: Relative) -> None:
    """A sampled interval at confidence 0.99 misses its point in 1 of 100; the seed is fixed."""
    exact = estimate(CLASSIFIER, POINTS, Taylor(noise=noise))
    assert torch.allclose(exact.value, truth(noise.sigma), rtol=1e-12, atol=1e-300)
    sampled = estimate(CLASSIFIER, POINTS, kind(noise=noise), rows=MANY_ROWS)
    assert ((sampled.low <= exact.value * (1 + 1e-9)) & (exact.value <= sampled.high)).all()


def test_decibels_are_those_of_the_definition() -> None:
    assert Decibels(20).sigma == pytest.approx(0.1, rel=1e-15)
    assert Decibels(0).sigma == 1.0
    assert Decibels(-6).level == pytest.approx(-6.0)
    for wrong in (math.nan, math.inf, "20", True):
        with pytest.raises(ParameterError, match="decibels"):
            Decibels(wrong)  # type: ignore[arg-type]
