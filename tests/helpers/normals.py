"""Means and covariances of multivariate normals, and SciPy's orthant probabilities."""

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


def relative(estimate: Tensor, expected: float) -> float:
    return abs(float(estimate) / expected - 1)


_SEEDED = "rng" in inspect.signature(stats.multivariate_normal.cdf).parameters


def normal_cdf(
    x: np.ndarray, mean: np.ndarray, covariance: np.ndarray, error: float, points: int | None = None
) -> float:
    """Return SciPy's probability that a normal variable is below `x` in every coordinate.

    Args:
        x: upper ends, `[D]`.
        mean: mean, `[D]`.
        covariance: covariance, `[D, D]`; it may be singular.
        error: intended absolute error.
        points: largest number of points of the integrand; SciPy's own choice by default.
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
