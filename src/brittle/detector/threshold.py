"""The threshold of a detector, how many points it needs, and whether it keeps the rate that was asked for."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from brittle.detector.results import Rate
from brittle.errors import DataError, ParameterError

STEADY = 13
"""So many times the brittle points that a rate needs make it steady: see `steady_rate`."""


def check_rate(tpr: float) -> float:
    """`tpr` as a float.

    Raises:
        ParameterError: it is no number between 0 and 1.
    """
    if not isinstance(tpr, Real) or not 0.0 < tpr < 1.0:
        raise ParameterError(f"the true positive rate must lie between 0 and 1; found {tpr!r:.60}")
    return float(tpr)


def points_needed(tpr: float) -> int:
    """Brittle points below which no threshold holds a true positive rate of `tpr`: `tpr / (1 - tpr)`, rounded up."""
    return math.ceil(_exact(tpr) / (1 - _exact(tpr)))


def steady_rate(tpr: float) -> float:
    """What the rate of one calibration on `STEADY * points_needed(tpr)` points reaches at least 19 times out of 20.

    As many brittle points are missed as `tpr` allows, and half as many again: its law, Beta(k, n + 1 - k), lies below
    with a probability of at most 0.05 (`threshold_of`).
    """
    return tpr - (1.0 - tpr) / 2.0


def about_threshold(rate: Rate, points: int, tpr: float) -> str:
    """Whether the held-out `rate` of a threshold, chosen with half of `points` brittle points, agrees with `tpr`.

    The rate is that of the decided points alone, which are what the threshold was chosen on.
    """
    steady = 2 * STEADY * points_needed(tpr)
    enough = f"{steady} make the rate steady, at least {steady_rate(tpr):.4g} in 95% of calibrations"
    if rate.high >= tpr:
        varies = f"; with {points} brittle points the rate of one varies, {enough}" if points < steady else ""
        return f"agrees with the rate of {tpr} asked for, which is an average over calibrations{varies}"
    return (
        f"misses the rate of {tpr} asked for: the interval of the held-out rate ends at "
        f"{math.floor(1e4 * rate.high) / 1e4:.4f}, because the rate is kept on average over calibrations and this one "
        f"is unlucky; calibrate on more brittle points (here {points}; {enough}), or once more with another seed, but "
        f"not until one agrees"
    )


def threshold_of(scores: NDArray[np.float64], tpr: float) -> float:
    r"""The smallest threshold below which a further brittle point scores with probability `tpr` or more.

    $$\tau = s_{(k)} + \mathrm{ulp}, \qquad k = \lceil \mathrm{tpr}\,(n + 1) \rceil,$$

    with `s_(1) <= ... <= s_(n)` the scores of the calibration points: the next double above `s_(k)`, because what
    equals the threshold is not flagged. Ties need no care: `s < tau` is `s <= s_(k)`.

    Validity: for `n` points exchangeable with the further one, `P(s < tau) >= k / (n + 1) >= tpr`, over the draw of all
    `n + 1` points; with continuous scores the rate for one calibration is Beta(k, n + 1 - k).

    References:
        Algorithmic learning in a random world, Vladimir Vovk, Alexander Gammerman and Glenn Shafer, 2005, chapter 2.

    Args:
        scores: of brittle points, `[n]`; minus infinity where the point is flagged at every threshold.
        tpr: true positive rate, between 0 and 1.

    Raises:
        DataError: there are fewer than `points_needed(tpr)` of them, or `s_(k)` is minus infinity: so many points have
            no score that any threshold would do.
    """
    if scores.size < points_needed(tpr):
        raise too_few(str(scores.size), points_needed(tpr), "to calibrate on", tpr)
    rank = math.ceil(_exact(tpr) * (scores.size + 1))
    decisive = np.sort(scores)[rank - 1]
    if np.isneginf(decisive):
        raise DataError(
            "too_few_points",
            f"{int(np.isneginf(scores).sum())} of {scores.size} brittle points to calibrate on have no score, so that "
            f"no threshold can be chosen for a true positive rate of {tpr}; repair what keeps them from having one, or "
            f"choose another score",
        )
    return float(np.nextafter(decisive, np.inf))


def flagged(scores: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """The rule: brittle unless the score is a finite number that reaches the threshold, `[n]`."""
    return ~(np.isfinite(scores) & (scores >= threshold))


def too_few(found: str, needed: int, use: str, tpr: float, wider: str = "a larger epsilon") -> DataError:
    """The error for fewer brittle points than a rate needs.

    Args:
        found: how many there are.
        needed: how many it needs.
        use: what they are for.
        tpr: the rate.
        wider: what would make more points brittle.
    """
    return DataError(
        "too_few_points",
        f"a true positive rate of {tpr} needs {needed} brittle points, {use}; found {found}; score more points, or "
        f"choose {wider} or a smaller rate",
    )


def _exact(rate: float) -> Fraction:
    """A rate as it was written, so that 0.9 is nine tenths."""
    return Fraction(str(rate))
