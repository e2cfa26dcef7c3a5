"""Both ways to sample rare flips without a network: margins that are functions of the noise, with known tails."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from scipy import stats
from torch import Tensor

from brittle.extensions.rare_events.stretched import Stretched, stretched
from brittle.extensions.rare_events.subset import Draw, LevelProduct, Result, Search, subset

COPIES = 100


def run(search: Search[Result], margins: Callable[[Tensor], Tensor]) -> Result:
    """What a search finds where one competitor has these margins, `[m, n] -> [m]`."""
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
    """Subset simulation of `u_1 > far`."""
    draw = normal(3, seed)
    first = draw(COPIES)
    every = torch.stack((torch.full((COPIES,), torch.inf), far - first[:, 0]), dim=1).double()
    return run(subset(draw, first, every, torch.ones(2).double()), lambda noise: far - noise[:, 0])


def follow(flips: Callable[[Tensor], Tensor], seed: int, size: int = 50) -> Stretched:
    """Stretched noise that is told of flips alone."""
    return run(stretched(normal(size, seed), COPIES), lambda noise: torch.where(flips(noise), -1.0, 1.0))


def test_subset_simulation_of_a_normal_tail_and_its_error() -> None:
    """The mean of the logarithms is low by half their variance, as of a number that is right in the mean."""
    found = [simulate(seed) for seed in range(40)]
    logs = torch.tensor([one.log for one in found])
    stated = sum(one.variance for one in found) / len(found)
    expected = math.log(stats.norm.sf(3.5)) - stated / 2
    assert abs(float(logs.mean()) - expected) < 5 * math.sqrt(stated / len(found))
    assert 0.5 < float(logs.var()) / stated < 2.5


def test_stretched_noise_and_a_cliff_in_many_dimensions() -> None:
    """`|u| > r` and `u_1 > 3.5`: the mean of 20 estimates, each right in the mean, with errors of 0.8 and less."""
    far = float(stats.chi2.isf(1e-5, 50))
    for flips, truth in (
        (lambda u: u.square().sum(dim=1) > far, 1e-5),
        (lambda u: u[:, 0] > 3.5, float(stats.norm.sf(3.5))),
    ):
        products = [one for one in (follow(flips, seed).product for seed in range(20)) if one]
        assert len(products) == 20
        stated = sum(one.variance for one in products) / 20
        mean = sum(one.log for one in products) / 20
        assert abs(mean - math.log(truth) + stated / 2) < 0.2 + 5 * math.sqrt(2 * stated / 20)
