"""Both methods to sample rare flips, without a network: margins are functions of the noise with known tails."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from scipy import stats
from torch import Tensor

from brittle.extensions.rare_events.stretched import stretch_noise
from brittle.extensions.rare_events.subset import Draw, LevelProduct, Result, Search, simulate_subset

COPIES = 100


def run(search: Search[Result], margins: Callable[[Tensor], Tensor]) -> Result:
    """Return the result of a search whose only competitor has `margins`, `[m, n] -> [m]`."""
    noise = next(search)
    while True:
        nearest = margins(noise).double()
        try:
            noise = search.send(torch.stack((torch.full_like(nearest, torch.inf), nearest), dim=1))
        except StopIteration as end:
            return end.value


def normal(size: int, seed: int) -> Draw:
    generator = torch.Generator().manual_seed(seed)
    return lambda count: torch.randn(count, size, generator=generator)


def simulate(seed: int, far: float = 3.5) -> LevelProduct:
    """Simulate `u_1 > far` by subsets."""
    draw = normal(3, seed)
    noise = draw(COPIES)
    margins = torch.stack((torch.full((COPIES,), torch.inf), far - noise[:, 0]), dim=1).double()
    return run(simulate_subset(draw, noise, margins, torch.ones(2).double()), lambda noise: far - noise[:, 0])


def follow(flips: Callable[[Tensor], Tensor], seed: int, size: int = 50) -> tuple[LevelProduct | None, int]:
    """Stretch noise with flips as the only information."""
    return run(stretch_noise(normal(size, seed), COPIES), lambda noise: torch.where(flips(noise), -1.0, 1.0))


def test_subset_simulation_of_a_normal_tail_and_its_error() -> None:
    """The mean of the logarithms is low by half their variance, as for an unbiased estimate."""
    products = [simulate(seed) for seed in range(40)]
    logs = torch.tensor([product.log for product in products])
    stated = sum(product.variance for product in products) / len(products)
    expected = math.log(stats.norm.sf(3.5)) - stated / 2
    assert abs(float(logs.mean()) - expected) < 5 * math.sqrt(stated / len(products))
    assert 0.5 < float(logs.var()) / stated < 2.5


def test_stretched_noise_and_a_cliff_in_many_dimensions() -> None:
    """`|u| > r` and `u_1 > 3.5`: the mean of 20 unbiased estimates, with errors of at most 0.8."""
    far = float(stats.chi2.isf(1e-5, 50))
    for flips, truth in (
        (lambda u: u.square().sum(dim=1) > far, 1e-5),
        (lambda u: u[:, 0] > 3.5, float(stats.norm.sf(3.5))),
    ):
        products = [product for product in (follow(flips, seed)[0] for seed in range(20)) if product]
        assert len(products) == 20
        stated = sum(product.variance for product in products) / 20
        mean = sum(product.log for product in products) / 20
        assert abs(mean - math.log(truth) + stated / 2) < 0.2 + 5 * math.sqrt(2 * stated / 20)
