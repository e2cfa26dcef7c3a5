"""Subset simulation without a network: a margin that is linear in the noise."""

from __future__ import annotations

import math

import torch
from scipy import stats

from brittle.measure.rare.asking import Seen
from brittle.measure.rare.subset import SubsetSimulation, subset

REPEATS, COPIES, FAR = 40, 100, 3.5


def simulate(seed: int) -> SubsetSimulation:
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> torch.Tensor:
        return torch.randn(count, 3, generator=generator)

    def answer(noise: torch.Tensor) -> Seen:
        margins = FAR - noise[:, 0].double()
        return Seen(torch.stack((torch.full_like(margins, torch.inf), margins), dim=1), margins, 0, None)

    first = draw(COPIES)
    search = subset(draw, first, answer(first), torch.ones(2, dtype=torch.float64))
    ask = next(search)
    while True:
        try:
            ask = search.send(answer(ask.noise))
        except StopIteration as end:
            return end.value


def test_a_normal_tail_and_its_error() -> None:
    """The mean of the logarithms is low by half their variance, as of a number that is right in the mean."""
    found = [simulate(seed) for seed in range(REPEATS)]
    logs = torch.tensor([one.log_probability for one in found])
    stated = sum(one.variance for one in found) / REPEATS
    expected = math.log(stats.norm.sf(FAR)) - stated / 2
    assert abs(float(logs.mean()) - expected) < 5 * math.sqrt(stated / REPEATS)
    assert 0.5 < float(logs.var()) / stated < 2.5
    assert all(bool((one.flipped[:, 0] >= FAR).all()) for one in found)
    assert all(len(one.flipped) >= COPIES // 5 for one in found)
