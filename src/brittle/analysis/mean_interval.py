"""Means and medians over points with their intervals: of numbers between 0 and 1, and of numbers without bounds."""

import math
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from brittle.analysis.weighted_mean import lower_quantiles
from brittle.errors import ParameterError
from brittle.intervals import check_confidence

ROUNDING = 1e-9  # distance by which rounding may put a number outside its range
SMALL_SKEWNESS = 1e-6  # below it the correction is lost in rounding


class MeanInterval(NamedTuple):
    """A mean over points and the ends of its confidence interval."""

    mean: float
    low: float
    high: float


def mean_interval(values: ArrayLike, confidence: float) -> MeanInterval:
    r"""Mean of `values` in [0, 1] over points, with a confidence interval for the mean of their population.

    The Bayesian bootstrap of Gaffke's bound: the points and one imagined point at the end of the range (0 for the
    lower end, 1 for the upper) get Dirichlet(1, ..., 1) weights, and the quantile of the weighted mean's own law is the
    bound (`brittle.analysis.weighted_mean`). For values 0 and 1 it gives the Clopper-Pearson interval, for points that
    are all alike one that is wide rather than empty, and for many points the normal interval. A Beta law of the same
    mean and variance misses up to 2.6 times as often on one side as it may (14 points at 0, 0.13 and 1).

    The interval covers the sampling of points and the random error of each value, not a bias of the estimator.

    References:
        Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
        Norbert Gaffke, 2005.
        A new confidence interval for the mean of a bounded random variable, Erik Learned-Miller and Philip S. Thomas,
        2020, https://arxiv.org/abs/1905.06208

    Args:
        values: one number per point, `[n]`; NaN is left out. Without any the result is NaN, 0 and 1.
        confidence: two-sided coverage, such as 0.99.

    Raises:
        ParameterError: a number lies outside [0, 1] by more than rounding, or the confidence is none.
    """
    check_confidence(confidence)
    points = _known(values)
    odd = points[np.abs(points - 0.5) > 0.5 + ROUNDING]
    if odd.size:
        raise ParameterError(f"the numbers must lie between 0 and 1; found {float(odd[0])!r}")
    points = points.clip(0.0, 1.0)
    if points.size == 0:
        return MeanInterval(math.nan, 0.0, 1.0)
    low, high = mean_ends(points, np.array([(1.0 - confidence) / 2.0]))
    return MeanInterval(float(points.mean()), float(low[0]), float(high[0]))


def mean_ends(points: NDArray[np.float64], tails: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
    """Return the ends of `mean_interval` of one or more numbers in [0, 1] at the confidences `1 - 2 tails`, `[T]`."""
    mean = points.mean()
    low, high = (lower_quantiles(values, tails) if values.any() else 0.0 * tails for values in (points, 1.0 - points))
    return np.minimum(low, mean), np.maximum(1.0 - high, mean)


def ranged_interval(values: NDArray[np.float64], smallest: float, largest: float, confidence: float) -> MeanInterval:
    """`mean_interval` of numbers that lie between `smallest` and `largest`."""
    reach = largest - smallest
    return MeanInterval(*(smallest + reach * end for end in mean_interval((values - smallest) / reach, confidence)))


def joined(upper: MeanInterval, lower: MeanInterval) -> MeanInterval:
    """Return the sum of two independent means: the half-widths on either side are joined by their squares.

    References:
        Construction of confidence limits about effect measures, Guang Yong Zou and Allan Donner, 2008.
    """
    centre = upper.mean + lower.mean
    below = math.hypot(upper.mean - upper.low, lower.mean - lower.low)
    above = math.hypot(upper.high - upper.mean, lower.high - lower.mean)
    return MeanInterval(centre, centre - below, centre + above)


def skewed_mean(values: ArrayLike, confidence: float) -> MeanInterval:
    r"""Mean of `values` over points, with a confidence interval for the mean of a population that may be skewed.

    Student's ratio `T = sqrt(n) (mean - mu) / s` leans to one side where the population does. Hall's transformation

    $$g(T) = T + \frac{\gamma}{3 \sqrt n} T^2 + \frac{\gamma^2}{27 n} T^3 + \frac{\gamma}{6 \sqrt n}$$

    with the skewness `gamma` of the sample takes that back to first order and is increasing, so that the ends follow
    from `g(T) = -q` and `g(T) = q` in closed form; `q` is Student's quantile. NaN is left out.

    Validity: asymptotic, the points drawn independently. The share of 99% intervals that hold the mean of skewed
    populations stays below 99% for the heaviest tails and few points, yet far nearer than Student's. Below two points,
    and where all are alike, the interval is the whole line.

    References:
        On the removal of skewness by transformation, Peter Hall, 1992.
    """
    check_confidence(confidence)
    points = _known(values)
    if points.size < 2 or points.min() == points.max():
        return MeanInterval(float(points.mean()) if points.size else math.nan, -math.inf, math.inf)
    mean = float(points.mean())
    scale = float(np.abs(points).max())  # so that squares neither vanish nor overflow
    deviations = points / scale - (points / scale).mean()
    spread = math.sqrt(float(np.mean(deviations**2)))
    step = scale * spread / math.sqrt(points.size - 1.0)
    skewness = float(np.mean((deviations / spread) ** 3))
    quantile = float(stdtrit(points.size - 1.0, (1.0 + confidence) / 2.0))
    low, high = (mean - step * _ratio(end, skewness, points.size) for end in (quantile, -quantile))
    return MeanInterval(mean, min(low, mean), max(high, mean))


def median_interval(values: ArrayLike, confidence: float) -> tuple[float, float, float]:
    """Median of `values` over points, with the order statistics that hold the population's at any law of the points.

    `P(x_(k) > median) = P(Bin(n, 1/2) < k)` is at most `(1 - confidence) / 2` for the `k` that is taken, and the same
    from above; conservative. Where the points are too few for any `k`, the interval is the whole line. Infinite values
    take part: a median needs their order only. NaN is left out.

    References:
        Order statistics, Herbert A. David and Haikady N. Nagaraja, 2003, section 7.1.
    """
    check_confidence(confidence)
    points = np.sort(_known(values))
    if points.size == 0:
        return math.nan, -math.inf, math.inf
    k = int(scipy.stats.binom.ppf((1.0 - confidence) / 2.0, points.size, 0.5))
    low, high = (float(points[k - 1]), float(points[points.size - k])) if k else (-math.inf, math.inf)
    below, above = (float(points[place]) for place in ((points.size - 1) // 2, points.size // 2))
    return below / 2.0 + above / 2.0, low, high  # NaN between infinities of both signs


def _known(values: ArrayLike) -> NDArray[np.float64]:
    points = np.asarray(values, dtype=np.float64)
    return points[~np.isnan(points)]


def _ratio(end: float, skewness: float, points: int) -> float:
    """`T` with `g(T) = end`."""
    if abs(skewness) < SMALL_SKEWNESS:
        return end
    slant = skewness / math.sqrt(points)
    return 3.0 / slant * (math.cbrt(1.0 + slant * end - slant**2 / 6.0) - 1.0)
