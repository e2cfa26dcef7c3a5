"""Stretched noise without a network: only whether copies flip is known of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from scipy import stats
from torch import Tensor

from brittle.measure.rare.asking import Seen
from brittle.measure.rare.stretched import SHRUNK, Stretched, shrunk_copies, stretched

REPEATS, COPIES, SIZE = 30, 100, 50


def follow(flips: Callable[[Tensor], Tensor], seed: int) -> Stretched:
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> Tensor:
        return torch.randn(count, SIZE, generator=generator)

    search = stretched(draw, COPIES)
    ask = next(search)
    while True:
        margins = torch.where(flips(ask.noise), -1.0, 1.0).double()
        try:
            ask = search.send(
                Seen(torch.stack((torch.full_like(margins, torch.inf), margins), dim=1), margins, 0, None)
            )
        except StopIteration as end:
            return end.value


def logarithms(found: list[Stretched]) -> Tensor:
    return torch.tensor([-math.inf if one.descent is None else one.descent.log_probability for one in found])


def test_a_cliff_in_many_dimensions() -> None:
    """`|u| > r` and `u_1 > 3.5`: the mean of 30 estimates, each right in the mean, with errors of 0.8 and less."""
    far = float(stats.chi2.isf(1e-5, SIZE))
    for flips, truth in (
        (lambda u: u.square().sum(dim=1) > far, 1e-5),
        (lambda u: u[:, 0] > 3.5, float(stats.norm.sf(3.5))),
    ):
        found = [follow(flips, seed) for seed in range(REPEATS)]
        logs = logarithms(found)
        assert bool(logs.isfinite().all())
        stated = sum(one.descent.variance for one in found if one.descent) / REPEATS
        expected = math.log(truth) - stated / 2
        assert abs(float(logs.mean()) - expected) < 0.2 + 5 * math.sqrt(2 * stated / REPEATS)
        assert all(bool(flips(one.descent.flipped).all()) for one in found if one.descent)


def test_rays_that_leave_the_flips_again() -> None:
    """`3 < u_1 < 4.5`: flips of more stretched noise need not be flips of less stretched one."""
    logs = logarithms([follow(lambda u: (u[:, 0] > 3.0) & (u[:, 0] < 4.5), seed) for seed in range(REPEATS)])
    truth = math.log(float(stats.norm.sf(3.0) - stats.norm.sf(4.5)))
    assert abs(float(logs.nan_to_num(neginf=-20.0).median()) - truth) < 0.8


def test_nothing_to_follow() -> None:
    found = follow(lambda u: torch.zeros(len(u), dtype=torch.bool), 0)
    assert found.descent is None
    assert found.shrunk == 0
    assert len(found.flipped) == 0


def test_short_noise_alone_flips() -> None:
    found = follow(lambda u: u.square().sum(dim=1) < 0.85**2 * SIZE, 0)
    assert found.shrunk >= 2 * shrunk_copies(COPIES) / len(SHRUNK)
