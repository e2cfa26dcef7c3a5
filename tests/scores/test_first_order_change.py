"""The expected change to first order: the gradient, its moments over the noise, and what widens it."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.laws import MANY_ROWS, estimate
from helpers.problems import inputs, small_classifier
from torch import Tensor

import brittle
from brittle.errors import ParameterError
from brittle.estimate import Status
from brittle.noise import Gaussian, Noise, Sphere
from brittle.scores import FirstOrderChange, ProbabilityChange
from brittle.scores.first_order_change import absolute_moment

SIZE = 12


@pytest.mark.parametrize("noise", [Gaussian(1e-3), Sphere(1e-3)], ids=lambda noise: noise.name)
@pytest.mark.parametrize("statistic", ["variance", "absolute"])
def test_first_order_is_inside_at_a_small_radius(noise: Noise, statistic: str) -> None:
    """Smooth network, 50 points: its own error is 6% over 500 pairs, 6 times as much happens once in 1e6."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(SIZE, 24), torch.nn.Tanh(), torch.nn.Linear(24, 4)).double()
    x = inputs(50, (SIZE,), dtype=torch.float64)
    first = estimate(brittle.Classifier(net), x, FirstOrderChange(noise=noise, statistic=statistic))
    score = ProbabilityChange(noise=noise, statistic=statistic, draws=1000)
    sampled = estimate(brittle.Classifier(net), x, score, rows=MANY_ROWS)
    assert bool(((sampled.low <= first.value) & (first.value <= sampled.high)).all())
    assert float((sampled.value / first.value - 1.0).abs().max()) < 0.38
    assert bool((first.low.isnan() & first.high.isnan()).all())


def test_first_order_is_the_gradient() -> None:
    net, x = small_classifier().model, inputs(4)
    leaf = x.clone().requires_grad_(True)
    top = net(leaf).softmax(1).amax(1)  # type: ignore[operator]
    norm = torch.autograd.grad(top.sum(), leaf)[0].flatten(1).norm(dim=1).double()
    found = estimate(small_classifier(), x, FirstOrderChange(0.2)).value
    assert torch.allclose(found, (0.2 * norm).square(), rtol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 12, 3072])
def test_absolute_moment(size: int) -> None:
    """`E|e_1|`: of 200,000 draws, within 5 standard errors (once in 2e6)."""
    generator = torch.Generator().manual_seed(size)
    normal = torch.randn(2000, size, generator=generator, dtype=torch.float64)
    on_sphere = (normal * (math.sqrt(size) / normal.norm(dim=1, keepdim=True))).abs()
    error = 5.0 * float(on_sphere.mean(dim=1).std()) / math.sqrt(2000)
    assert abs(float(on_sphere.mean()) - absolute_moment(Sphere(1.0), size)) <= error + 1e-12
    assert absolute_moment(Gaussian(0.5), size) == pytest.approx(0.5 * math.sqrt(2 / math.pi))


def test_sphere_of_radius() -> None:
    noise = Sphere.of_radius(0.7, 49)
    draws = noise.sigma * noise.draw(torch.Generator().manual_seed(0), 49)
    assert float(draws.norm()) == pytest.approx(0.7)
    with pytest.raises(ParameterError):
        Sphere.of_radius(-1.0, 49)


def test_no_gradient_is_no_bound() -> None:
    from brittle.scores import ChangeBound

    class Clamped(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.flatten(1)[:, :3].clamp(5.0, 6.0) + torch.tensor([0.0, 1.0, 2.0])

    found = estimate(brittle.Classifier(Clamped()), inputs(2), ChangeBound(0.1))
    assert set(found.status.tolist()) == {int(Status.ZERO_GRADIENT)}
