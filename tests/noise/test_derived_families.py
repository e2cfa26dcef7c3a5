"""Families of users that derive from others, or claim little: nothing is believed of draws that nobody declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor

import brittle
from brittle.noise import Gaussian, Noise, Swap, identity
from brittle.scores import MonteCarlo

POINTS, DRAWS = 30, 400


def second_decides() -> brittle.Classifier:
    """A linear network that predicts by the sign of the second number alone."""
    network = torch.nn.Linear(2, 2).eval()
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.0, 1.0], [0.0, -1.0]]))
        network.bias.zero_()
    return brittle.Classifier(network, bounds="none")


def draws_of_two(generator: torch.Generator, size: int) -> Tensor:
    """Uncorrelated, each of variance 1: the first is 0 but for 10 or -10 in one of 100 draws, the others 1 or -1."""
    drawn = torch.randint(0, 2, (size,), generator=generator) * 2.0 - 1.0
    drawn[0] *= 10.0 * (torch.rand(1, generator=generator) < 0.01).float().item()
    return drawn


@dataclass(frozen=True)
class Mixed(Noise):
    name: ClassVar[str] = "mixed"
    symmetric: ClassVar[bool] = True
    covariance = identity

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        return draws_of_two(generator, size)


@dataclass(frozen=True)
class MixedGaussian(Gaussian):
    name: ClassVar[str] = "mixed_gaussian"

    def draw(self, generator: torch.Generator, size: int) -> Tensor:
        return draws_of_two(generator, size)


@pytest.mark.parametrize("family", [Mixed, MixedGaussian])
def test_coordinates_that_are_not_alike_keep_their_places_where_some_stay(family: type[Noise]) -> None:
    """At 0.5 the second number changes its sign in half of the draws; by chance an interval misses once in 100."""
    points = brittle.data.array_points(torch.full((POINTS, 2), 0.5), mask=torch.tensor([[0, 1]]).expand(POINTS, 2))
    found = brittle.score(second_decides(), points, [MonteCarlo(noise=family(1.0), draws=DRAWS)])["monte_carlo"]
    held = ((found.low <= 0.5) & (found.high >= 0.5)).sum()
    assert held >= POINTS - 5  # five of 30 miss once in 2e5


@dataclass(frozen=True, init=False)
class SwapAndShake(Swap):
    name: ClassVar[str] = "swap_and_shake"

    def apply(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return super().apply(x, generator) + torch.randn(x.shape, generator=generator)


def test_what_does_more_than_swap_moves_more_than_the_columns() -> None:
    """The second number, no column of the swap, changes its sign in 30.9% of the draws; misses as above."""
    x = torch.full((POINTS, 2), 0.5) + 1e-4 * torch.rand(POINTS, 2)
    noise = SwapAndShake(0.2, x, torch.tensor([True, False]))
    found = brittle.score(second_decides(), x, [MonteCarlo(noise=noise, draws=DRAWS)])["monte_carlo"]
    assert ((found.low <= 0.3085) & (found.high >= 0.3085)).sum() >= POINTS - 5
