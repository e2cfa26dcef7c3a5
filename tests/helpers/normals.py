"""Means and covariances of multivariate normals, and what their orthant probabilities are checked with."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.orthant import OrthantProbability, orthant_probability


def equicorrelated(dimension: int, correlation: float) -> Tensor:
    return torch.full((dimension, dimension), correlation, dtype=torch.float64).fill_diagonal_(1.0)


def single(mean: Tensor | list[float], covariance: Tensor, **options: float) -> OrthantProbability:
    return orthant_probability(torch.as_tensor(mean, dtype=torch.float64)[None], covariance[None], **options)  # pyright: ignore[reportArgumentType]


def relative(found: Tensor, expected: float) -> float:
    return abs(float(found) / expected - 1)
