"""The mean and the median of numbers without bounds, with intervals that hold for skewed ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from brittle.analysis.mean_interval import MeanInterval
from brittle.intervals import check_confidence

SMALL_SKEWNESS = 1e-6
"""Skewness below which the correction is lost in rounding, and Student's interval is given as it is."""


class MedianInterval(NamedTuple):
    """A median over points and the ends of its confidence interval; NaN and the whole line where there is no point."""

    median: float
    low: float
    high: float


def skewed_mean(values: ArrayLike, confidence: float) -> MeanInterval:
    r"""Mean of `values` over points, with a confidence interval for the mean of a population that may be skewed.

    Student's ratio `T = sqrt(n) (mean - mu) / s` leans to one side where the population does. Hall's transformation

    $$g(T) = T + \frac{\gamma}{3 \sqrt n} T^2 + \frac{\gamma^2}{27 n} T^3 + \frac{\gamma}{6 \sqrt n}$$

    with the skewness `gamma` of the sample takes that back to first order and is increasing, so that the ends follow
    from `g(T) = -q` and `g(T) = q` in closed form; `q` is Student's quantile. Without skewness it is Student's
    interval.

    Validity: asymptotic, the points drawn independently. Tests measure the share of 99% intervals that hold the mean
    of skewed populations (exponential, log-normal); it stays below 99% for the heaviest tails and few points, yet far
    nearer than Student's. Below two points, and where all are alike, nothing is known of the spread: the interval is
    the whole line.

    References:
        On the removal of skewness by transformation, Peter Hall, 1992.

    Args:
        values: one finite number per point, `[n]`; NaN is left out.
        confidence: two-sided coverage, such as 0.99.

    Raises:
        ParameterError: the confidence is not between 0 and 1.

    Example:
        >>> interval = skewed_mean([0.1, 0.2, 0.3, 0.4, 4.0], 0.9)
        >>> interval.mean - interval.low < interval.high - interval.mean
        True
    """
    check_confidence(confidence)
    points = _known(values)
    if points.size == 0:
        return MeanInterval(math.nan, -math.inf, math.inf)
    mean = float(points.mean())
    if points.size < 2 or points.min() == points.max():
        return MeanInterval(mean, -math.inf, math.inf)
    scale = float(np.abs(points).max())  # so that squares neither vanish nor overflow
    deviations = points / scale - (points / scale).mean()
    spread = math.sqrt(float(np.mean(deviations**2)))
    step = scale * spread / math.sqrt(points.size - 1.0)
    skewness = float(np.mean((deviations / spread) ** 3))
    quantile = float(stdtrit(points.size - 1.0, (1.0 + confidence) / 2.0))
    low, high = (mean - step * _ratio(end, skewness, points.size) for end in (quantile, -quantile))
    return MeanInterval(mean, min(low, mean), max(high, mean))


def median_interval(values: ArrayLike, confidence: float) -> MedianInterval:
    """Median of `values` over points, with the order statistics that hold the population's at any law of the points.

    `P(x_(k) > median) = P(Bin(n, 1/2) < k)` is at most `(1 - confidence) / 2` for the `k` that is taken, and the same
    from above; conservative. Where the points are too few for any `k`, the interval is the whole line. Infinite values
    take part: a median needs their order only.

    References:
        Order statistics, Herbert A. David and Haikady N. Nagaraja, 2003, section 7.1.

    Args:
        values: one number per point, `[n]`; may be infinite; NaN is left out.
        confidence: two-sided coverage, such as 0.99.

    Raises:
        ParameterError: the confidence is not between 0 and 1.

    Example:
        >>> median_interval([1.0, 2.0, 3.0, float("inf"), 5.0, 6.0, 7.0], 0.9)
        MedianInterval(median=5.0, low=1.0, high=inf)
    """
    check_confidence(confidence)
    points = np.sort(_known(values))
    if points.size == 0:
        return MedianInterval(math.nan, -math.inf, math.inf)
    k = int(scipy.stats.binom.ppf((1.0 - confidence) / 2.0, points.size, 0.5))
    low, high = (points[k - 1], points[points.size - k]) if k else (-math.inf, math.inf)
    below, above = points[(points.size - 1) // 2], points[points.size // 2]
    opposite = np.isinf(below) and np.isinf(above) and below != above
    median = math.nan if opposite else float(below / 2.0 + above / 2.0)
    return MedianInterval(median, float(low), float(high))


def _known(values: ArrayLike) -> NDArray[np.float64]:
    points = np.asarray(values, dtype=np.float64)
    return points[~np.isnan(points)]


def _ratio(end: float, skewness: float, points: int) -> float:
    """`T` with `g(T) = end`."""
    if abs(skewness) < SMALL_SKEWNESS:
        return end
    slant = skewness / math.sqrt(points)
    return 3.0 / slant * (math.cbrt(1.0 + slant * end - slant**2 / 6.0) - 1.0)
