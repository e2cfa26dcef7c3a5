"""Mixtures that are drawn from instead of the noise: their weights are those of their draws."""

from __future__ import annotations

import torch

from brittle.measure.rare.mixture import Candidates, Mixture, Parts, fit

FACTOR = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
COVARIANCE = FACTOR @ FACTOR.T
DRAWS = 40_000


def covariance(vectors: torch.Tensor) -> torch.Tensor:
    return vectors @ COVARIANCE


def some_parts() -> Parts:
    slopes = torch.tensor([[1.0, 0.0], [-1.0, 2.0], [0.0, -3.0]], dtype=torch.float64)
    centres, widths = torch.tensor([1.5, 1.0, 2.0]).double(), torch.tensor([1.0, 0.8, 1.0]).double()
    return Parts.along(slopes, covariance, centres, widths)


def plain(seed: int = 0) -> torch.Tensor:
    noise = torch.randn(DRAWS, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return noise @ FACTOR.T


def test_weights_average_to_one_and_give_back_the_noise() -> None:
    """`E_q[w] = 1` and `E_q[w e e^T] = S`; six standard errors, which fail by chance once in 1e8."""
    mixture = Mixture(some_parts(), torch.tensor([DRAWS // 4] * 4))
    drawn = mixture.draw(plain())
    weights = torch.exp(-mixture.ratios(drawn))
    assert float(weights.amax()) <= 4.0 + 1e-9
    for values, truth in (
        (weights, 1.0),
        (weights * drawn[:, 0].square(), 1.0),
        (weights * drawn[:, 0] * drawn[:, 1], 0.6),
    ):
        assert abs(float(values.mean()) - truth) < 6 * float(values.std()) / DRAWS**0.5


def test_parts_lie_where_their_margins_fall() -> None:
    parts = some_parts()
    moved = parts.move(plain(), torch.zeros(DRAWS, dtype=torch.int64))
    assert abs(float((moved @ parts.duals[0]).mean()) - 1.5) < 0.05
    assert float(parts.duals[0] @ torch.tensor([1.0, 0.0]).double()) < 0
    assert torch.allclose((parts.duals * covariance(parts.duals)).sum(dim=1), torch.ones(3).double())


def test_a_fit_keeps_what_is_steady_and_finds_what_is_likely() -> None:
    parts = some_parts()
    noise = parts.move(plain()[:60], torch.full((60,), 2))
    steady = torch.tensor([True, False, False])
    mixture = fit(Candidates(parts, torch.tensor([-1, -1, -1]), steady), noise, 200)
    assert int(mixture.counts.sum()) == 200
    assert int(mixture.counts[0]) == 20
    assert int(mixture.counts[1]) >= 54
    assert int(mixture.counts[1:].max()) < 150
