"""Noise families of every kind, built in and of one's own."""

from __future__ import annotations

import pytest
import torch

from brittle.noise import FAMILIES, DiagonalGaussian, FactorGaussian, FunctionGaussian, Noise, Stream

SIZE, DRAWS, SIGMA = 6, 20000, 0.3


def root() -> torch.Tensor:
    return torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(5)) * 0.5


def families() -> list[Noise]:
    a = root()
    return [
        *(family(SIGMA) for family in FAMILIES.values()),
        DiagonalGaussian(SIGMA, torch.linspace(0.0, 2.0, SIZE)),
        FactorGaussian(SIGMA, a[:, :3]),
        FunctionGaussian(SIGMA, lambda v: v @ (a @ a.T).to(v), lambda u: a @ u),
    ]


each = pytest.mark.parametrize("noise", families(), ids=lambda noise: noise.name)


def draws(noise: Noise, count: int, ids: tuple[str, ...] = ("a",), seed: int = 0) -> torch.Tensor:
    return Stream(noise, torch.zeros(len(ids), SIZE, dtype=torch.float32), ids, seed, "test").draw(count)
