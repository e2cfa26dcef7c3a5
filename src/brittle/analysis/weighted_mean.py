"""Quantiles of a mean of numbers whose weights are drawn at random, all weights that sum to 1 being equally likely."""

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri

Values = NDArray[np.float64]

MOST = 128  # different numbers that are looked at one by one; of more, those of an interval are two with their moments
LEAST = 1e-18  # share of the largest number below which numbers are one interval
PLACES = 0.125 * np.arange(66).reshape(3, 22)  # inverse hyperbolic sines of distances from the saddle point

NEGLIGIBLE = 1e-17
"""Modulus of `e^{K(z) - K(line)}` below which no more places are taken: it only falls, faster with more numbers."""

LOOKS = 40  # tilts that are looked at in one step of the search for those that span some probabilities
TILTS = (1e-8, 1e18)  # the smallest and the largest tilt


class _Tilted(NamedTuple):
    """The sum `S = sum_i E_i (x_i - t)` of independent exponential numbers `E_i`, `[T]` each: the mean `t` of the
    tilted law, the saddle point `s < 0` of `K(s) = -sum_i log(1 - s (x_i - t))`, its `height` `K(s)` and `curvature`.
    """

    t: Values
    s: Values
    height: Values
    curvature: Values


def lower_quantiles(values: Values, tails: Values) -> Values:
    r"""Quantiles of `sum_i w_i x_i` over `values` and one 0 more, with Dirichlet(1, ..., 1) weights, `[T]`.

    The weights are independent exponential numbers over their sum, so the weighted mean is at most `t` where `S = sum_i
    E_i (x_i - t)` is at most 0,

    $$P(S \le 0) = -\frac{1}{2 \pi i} \int \frac{e^{K(z)}}{z} dz, \qquad K(z) = -\sum_i \log(1 - z (x_i - t)),$$

    along a vertical line to the left of 0. The line goes near the saddle point, where the sum over few places is right
    to a hundredth of the probability. The quantiles are read off a spline through a few such probabilities, at places
    that the approximation of Lugannani and Rice finds. Above the mean of the law they are that mean. Of numbers that
    are 0 or all alike the weighted mean follows a Beta law, and the quantiles are its own. More than 128 different
    numbers are taken together by their first three moments in 64 intervals; the probabilities stay right to a
    hundredth down to 1e-12.

    The values are at least 0, one of them positive; the tails lie between 0 and 1/2.

    Source: Robert Lugannani and Stephen Rice, Saddle point approximation for the distribution of the sum of independent
    random variables, Adv. Appl. Prob. 12 (1980).
    """
    largest = float(values.max())
    if bool(((values == 0.0) | (values == largest)).all()):
        weighted = float(np.count_nonzero(values))
        return largest * betaincinv(weighted, values.size - weighted + 1.0, tails)
    numbers, counts = _condensed(values / largest)
    numbers, counts = np.append(numbers, 0.0), np.append(counts, 1.0)
    places, quantiles = _probabilities(numbers, counts, _tilts(numbers, counts, tails))
    order = np.unique(places, return_index=True)[1]
    probits, logarithms = ndtri(quantiles[order]), np.log(places[order])
    rising = np.append(True, np.diff(np.maximum.accumulate(probits)) > 1e-9)
    if rising.sum() < 2:
        return np.full(tails.shape, largest * places.min())
    spline = scipy.interpolate.CubicSpline(probits[rising], logarithms[rising])
    inside = np.clip(ndtri(tails), probits[rising][0], probits[rising][-1])
    return largest * np.exp(spline(inside))


def _condensed(values: Values) -> tuple[Values, Values]:
    """Different numbers and how often each is there; of many the two nodes of Gauss of each of `MOST / 2` intervals.

    The intervals grow with the numbers, as what a number does to the probability depends on its size beside the
    quantile. The nodes have the count, the mean, the spread and the skewness of the numbers of their interval, and lie
    among them.
    """
    numbers, counts = np.unique(values, return_counts=True)
    if numbers.size <= MOST:
        return numbers, counts.astype(np.float64)
    smallest = max(float(numbers[numbers > 0.0][0]), LEAST)
    place = np.searchsorted(np.geomspace(smallest, 1.0, MOST // 2 + 1)[1:-1], numbers, side="right")
    size = np.bincount(place, counts, MOST // 2)
    place, size = np.cumsum(size > 0)[place] - 1, size[size > 0]
    mean = np.bincount(place, counts * numbers) / size
    apart = numbers - mean[place]
    spread = np.sqrt(np.bincount(place, counts * apart**2) / size)
    apart /= np.where(spread > 0.0, spread, 1.0)[place]
    skewness = np.bincount(place, counts * apart**2 * apart) / size
    root = np.hypot(skewness, 2.0)
    nodes = np.concatenate((mean + spread * (skewness - root) / 2.0, mean + spread * (skewness + root) / 2.0))
    shares = np.concatenate((root + skewness, root - skewness)) / np.tile(2.0 * root, 2)
    return np.maximum(nodes, 0.0), shares * np.tile(size, 2)


def _tilted(numbers: Values, counts: Values, tilts: Values) -> _Tilted:
    weights = 1.0 / (1.0 - tilts[:, None] * numbers)
    share = weights @ counts / counts.sum()
    t = (weights * numbers) @ counts / counts.sum() / share
    height = np.log(weights) @ counts - counts.sum() * np.log(share)
    ratios = (numbers - t[:, None]) * weights / share[:, None]
    return _Tilted(t, tilts * share, height, ratios**2 @ counts)


def _tilts(numbers: Values, counts: Values, tails: Values) -> Values:
    """Negative tilts that span the probabilities `tails`, as Lugannani and Rice have them."""
    low, high = TILTS
    for _ in range(2):
        tilts = -np.geomspace(low, high, LOOKS)
        at = _tilted(numbers, counts, tilts)
        root, slope = -np.sqrt(np.maximum(-2.0 * at.height, 1e-30)), at.s * np.sqrt(at.curvature)
        density = np.exp(at.height) / np.sqrt(2.0 * np.pi)
        starts = np.where(root > -1e-3, 0.5, ndtr(root) + density * (1.0 / root - 1.0 / slope))
        above, below = np.flatnonzero(starts > 1.5 * tails.max()), np.flatnonzero(starts < tails.min() / 1.5)
        low = -float(tilts[above[-1] if above.size else 0])
        high = -float(tilts[below[0] if below.size else -1])
    return -np.geomspace(low, high, 6 + int(2.0 * np.log10(tails.max() / tails.min())))


def _probabilities(numbers: Values, counts: Values, tilts: Values) -> tuple[Values, Values]:
    """Return the places `t` of the tilts, and the probability of a weighted mean of at most `t`; `[T]` each."""
    at = _tilted(numbers, counts, tilts)
    # Left of the pole at 0 by a standard deviation, right of the one at -1 / t.
    line = np.maximum(np.minimum(at.s, -1.0 / np.sqrt(at.curvature)), (at.s - 1.0 / at.t) / 2.0)
    apart = numbers - at.t[:, None]
    slopes = apart / (1.0 - line[:, None] * apart)
    height = -np.log1p(-line[:, None] * apart) @ counts
    width = 1.0 / np.sqrt(slopes**2 @ counts + 1.0 / line**2)
    total = np.zeros(tilts.shape)
    for places in PLACES:
        z = line[:, None] + 1j * width[:, None] * np.sinh(places)
        # e^{K(z) - K(line)}: modulus and angle of its factors apart take a fifth of the time of complex logarithms.
        ratios = z.imag[..., None] * slopes[:, None]
        modulus = np.exp(-0.5 * (np.log1p(ratios**2) @ counts))
        steps = np.where(places == 0.0, 0.5, np.cosh(places))
        total += (modulus * np.exp(1j * (np.arctan(ratios) @ counts)) / z).real @ steps
        if modulus[:, -1].max() < NEGLIGIBLE:
            break
    return at.t, -total * PLACES[0, 1] / np.pi * width * np.exp(height)
