"""The mean of points between 0 and 1, with an interval that stays inside and has width for points all alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta


class MeanInterval(NamedTuple):
    """A mean over points and the ends of its confidence interval; NaN, 0 and 1 where there is no point."""

    mean: float
    low: float
    high: float


def mean_interval(values: ArrayLike, confidence: float) -> MeanInterval:
    r"""Mean of `values` in [0, 1] over points, with a confidence interval for the mean of their population.

    The Bayesian bootstrap of Gaffke's bound: the points and one imagined point at the end of the range (0 for the
    lower end, 1 for the upper) get Dirichlet(1, ..., 1) weights, and the quantile of the weighted mean is the bound.
    The distribution of the weighted mean, relative to the largest of the points (and of their distances from 1 for the
    upper end), is taken as the Beta distribution of the same mean and variance,

    $$m = \frac{\sum_i x_i}{n + 1}, \qquad v = \frac{\sum_i x_i^2 / (n + 1) - m^2}{n + 2}.$$

    That is exact for values 0 and 1, where it gives the Clopper-Pearson interval, and for points that are all alike,
    where it is wide rather than empty as a t interval would be; for many points it is the normal interval.

    The interval covers the sampling of points and the random error of each value, not a bias of the estimator.

    References:
        Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
        Norbert Gaffke, 2005.
        A new confidence interval for the mean of a bounded random variable, Erik Learned-Miller and Philip S. Thomas,
        2020, https://arxiv.org/abs/1905.06208

    Args:
        values: one number per point, `[n]`; NaN is left out.
        confidence: two-sided coverage, such as 0.99.
    """
    points = np.asarray(values, dtype=np.float64)
    points = points[~np.isnan(points)]
    if points.size == 0:
        return MeanInterval(float("nan"), 0.0, 1.0)
    low, high = mean_ends(points, np.array([(1.0 - confidence) / 2.0]))
    return MeanInterval(float(points.mean()), float(low[0]), float(high[0]))


def mean_ends(points: NDArray[np.float64], tails: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
    """The ends of `mean_interval` at several confidences, `1 - 2 tails`.

    Args:
        points: at least one number in [0, 1], `[n]`.
        tails: share of misses on either side, `[T]`.

    Returns:
        `(low, high)`, `[T]` each.
    """
    mean = points.mean()
    low = _bound(np.append(points, 0.0), tails)
    high = 1.0 - _bound(np.append(1.0 - points, 0.0), tails)
    return np.minimum(low, mean), np.maximum(high, mean)


def ranged_interval(values: NDArray[np.float64], least: float, largest: float, confidence: float) -> MeanInterval:
    """`mean_interval` of numbers that lie between `least` and `largest`."""
    reach = largest - least
    return MeanInterval(*(least + reach * end for end in mean_interval((values - least) / reach, confidence)))


def _bound(points: NDArray[np.float64], tails: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quantiles, at `tails`, of the Dirichlet-weighted mean of `points`, `[T]`."""
    largest = float(points.max())
    if largest == 0.0:
        return np.zeros(tails.shape)
    shares = points / largest
    mean, variance = shares.mean(), shares.var() / (shares.size + 1)
    strength = mean * (1.0 - mean) / variance - 1.0
    return largest * beta.ppf(tails, mean * strength, (1.0 - mean) * strength)
