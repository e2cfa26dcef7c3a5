"""SciPy's probability under a multivariate normal, with a seed in every release that takes one."""

from __future__ import annotations

import inspect

import numpy as np
from scipy import stats

_SEEDED = "rng" in inspect.signature(stats.multivariate_normal.cdf).parameters


def normal_cdf(
    x: np.ndarray, mean: np.ndarray, covariance: np.ndarray, error: float, points: int | None = None
) -> float:
    """The probability that a normal variable is below `x`, `[D]`, in every coordinate.

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
