"""Means and covariances of multivariate normals, and what their orthant probabilities are checked with."""

from __future__ import annotations

import inspect

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from brittle.orthant import OrthantProbability, orthant_probability


def equicorrelated(dimension: int, correlation: float) -> Tensor:
    return torch.full((dimension, dimension), correlation, dtype=torch.float64).fill_diagonal_(1.0)


def single(mean: Tensor | list[float], covariance: Tensor, **options: float) -> OrthantProbability:
    return orthant_probability(torch.as_tensor(mean, dtype=torch.float64)[None], covariance[None], **options)  # pyright: ignore[reportArgumentType]


def relative(found: Tensor, expected: float) -> float:
    return abs(float(found) / expected - 1)


_SEEDED = "rng" in inspect.signature(stats.multivariate_normal.cdf).parameters


def normal_cdf(
    x: np.ndarray, mean: np.ndarray, covariance: np.ndarray, error: float, points: int | None = None
) -> float:
    """SciPy's probability that a normal variable is below `x`, `[D]`, in every coordinate.

    Args:
        x: `[D]`.
        mean: `[D]`.
        covariance: `[D, D]`; it may be singular.
        error: the absolute error that is aimed at.
        points: the most points of the integrand; SciPy's own choice by default.
    """
    seed = {"rng": np.random.default_rng(1)} if _SEEDED else {}  # older ones draw from a fixed sequence
    return float(
        stats.multivariate_normal.cdf(
            x,
            mean,
            covariance,  # pyright: ignore[reportArgumentType]
            allow_singular=True,
            maxpts=points,
            abseps=error,
            **seed,  # pyright: ignore[reportArgumentType] the stubs know one release
        )
    )
