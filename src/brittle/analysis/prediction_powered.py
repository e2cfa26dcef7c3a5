"""The mean of cheap estimates on all points, corrected by counts on some of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from brittle.analysis.correlation import one_length
from brittle.analysis.mean_interval import MeanInterval, joined, mean_interval, ranged_interval
from brittle.errors import ParameterError
from brittle.intervals import check_confidence

GRID = np.linspace(0.0, 1.0, 21)
"""Weights that are tried, as shares of the largest."""

FEWEST = 5
"""Counted points below which no weight but 0 is tried."""

Values = NDArray[np.float64]


class PoweredMean(NamedTuple):
    """A corrected mean with its interval.

    Attributes:
        mean: the corrected mean, between 0 and 1; NaN without a count.
        low: lower end of its interval.
        high: upper end.
        weight: how much of the estimates it uses, from 0 (counts alone) to 1; NaN without a count.
    """

    mean: float
    low: float
    high: float
    weight: float


def powered_mean(estimates: ArrayLike, counts: ArrayLike, confidence: float) -> PoweredMean:
    r"""Mean of what `counts` estimates without bias, over points most of which have no count.

    With estimates `f_i` at all `N` points, counts `y_i` at `n` of them and a weight `w`,

    $$\hat\theta = \frac wN \sum_{i \le N} f_i + \frac1n \sum_{i\;\mathrm{counted}} (y_i - w f_i),$$

    whose expectation is that of the counts for every `w`, however wrong the estimates are. The weight is tuned (the
    power tuning of PPI++): of those between 0 and 1, the one with the narrowest interval, where not only the variance
    of `y - w f` counts but also its range, which few counted points cannot rule out. Each counted point gets the weight
    that the other ones ask for, so that no point is corrected by a weight that has seen it. Estimates that are useless,
    or that few counts cannot bear out, get the weight 0, and the mean is then that of the counts.

    The sum is that of two independent means: of `y - v f` over the counted points, and of `v f` over the others,
    `v = w (N - n) / N`. Their intervals are joined by the squares of their half-widths (`mean_interval.joined`). They
    cover the population that the points were drawn from.

    Every mean gets `mean_interval`, which needs no normal law: it is made for bounded numbers in small samples, exact
    for zeros and ones, and has width where all counts are 1. The Monte Carlo error of a count needs no term of its own,
    as counts vary by it.

    Validity: the counted points are a random sample that does not depend on any value (`sample_points`), and the draws
    of a count were not stopped by what they showed. The ends are as good as those of `mean_interval`: no guarantee,
    but no law was found that they miss more often than they may.

    References:
        Prediction-powered inference, Anastasios Angelopoulos et al., 2023, https://arxiv.org/abs/2301.09633
        PPI++: efficient prediction-powered inference, Anastasios Angelopoulos, John Duchi and Tijana Zrnic, 2023,
        https://arxiv.org/abs/2311.01453
        Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
        Norbert Gaffke, 2005.
        Construction of confidence limits about effect measures, Guang Yong Zou and Allan Donner, 2008.

    Args:
        estimates: between 0 and 1, `[N]`; a point without one is left out.
        counts: unbiased, between 0 and 1, `[N]`; NaN where nothing was counted.
        confidence: two-sided coverage, such as 0.99.

    Raises:
        ParameterError: the arrays differ in length or hold numbers outside [0, 1], or the confidence is none.

    Example:
        >>> nan = float("nan")
        >>> powered_mean([0.9, 0.8, 0.7, 0.9], [1.0, nan, 0.8, nan], 0.9).mean
        0.9
    """
    check_confidence(confidence)
    f, y = one_length(estimates=estimates, counts=counts)
    _check_range(f, y)
    known = ~np.isnan(f)
    f, y = f[known], y[known]
    counted = ~np.isnan(y)
    if not counted.any():
        return PoweredMean(math.nan, 0.0, 1.0, math.nan)
    found, weight = _corrected(f[counted], y[counted], f[~counted], confidence)
    mean = min(max(found.mean, 0.0), 1.0)
    return PoweredMean(mean, min(max(found.low, 0.0), mean), max(min(found.high, 1.0), mean), weight)


def _check_range(f: Values, y: Values) -> None:
    for name, values in (("estimates", f), ("counts", y)):
        odd = values[~np.isnan(values) & ~((values >= 0.0) & (values <= 1.0))]
        if odd.size:
            raise ParameterError(f"{name} must lie between 0 and 1; found {odd[0]!r} among {values.size:,}")


def _weights(f: Values, y: Values, confidence: float, others: float, most: float) -> Values:
    """For each counted point the weight, up to `most`, that makes the interval by the other ones narrowest, `[n]`.

    Args:
        f: estimates at the counted points, `[n]`.
        y: counts, `[n]`.
        confidence: of the interval.
        others: variance of the mean of `f` over the points that are not counted.
        most: the largest weight.
    """
    n = f.size
    if n < FEWEST:
        return np.zeros(n)
    tried = most * GRID[:, None]
    df, dy, without = f - f.mean(), y - y.mean(), n / (n - 1.0)
    ff, fy, yy = ((one * two).sum() - without * one * two for one, two in ((df, df), (df, dy), (dy, dy)))
    squares = yy - 2.0 * tried * fy + tried**2 * ff  # about the mean of the other points, [G, n]
    variances = np.maximum(squares, 0.0) / ((n - 2.0) * n) + tried**2 * others
    tail = (1.0 - confidence) / 2.0
    widths = -2.0 * ndtri(tail) * np.sqrt(variances) - math.log(tail) * (1.0 + tried) / n
    return most * GRID[np.argmin(widths, axis=0)]


def _corrected(f: Values, y: Values, others: Values, confidence: float) -> tuple[MeanInterval, float]:
    """The mean with its interval, and the weight of the estimates in it."""
    share = others.size / (f.size + others.size)
    if share == 0.0:
        return mean_interval(y, confidence), 0.0
    noise = float(np.concatenate([f, others]).var()) / others.size
    weights = _weights(f, y, confidence, noise, share)
    weight, most = float(weights.mean()), float(weights.max())
    own = ranged_interval(y - weights * f, -most, 1.0, confidence)
    if weight == 0.0:
        return own, 0.0
    rest = MeanInterval(*(weight * end for end in mean_interval(others, confidence)))
    return joined(own, rest), weight / share
