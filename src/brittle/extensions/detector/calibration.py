"""From points that are known to be brittle or robust to a threshold, what it achieves, and a verdict on its score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from brittle.analysis.correlation import kendall
from brittle.analysis.detection import auroc
from brittle.errors import DataError
from brittle.extensions.detector.criterion import KnownPoints
from brittle.extensions.detector.results import Counts, Judgement, Rate

STEADY = 13
"""So many times the brittle points that a rate needs make it steady: see `steady_rate`."""


def points_needed(tpr: float) -> int:
    """Brittle points below which no threshold holds a true positive rate of `tpr`: `tpr / (1 - tpr)`, rounded up."""
    return math.ceil(_exact(tpr) / (1 - _exact(tpr)))


def steady_rate(tpr: float) -> float:
    """What the rate of one calibration on `STEADY * points_needed(tpr)` points reaches at least 19 times out of 20.

    As many brittle points are missed as `tpr` allows, and half as many again: its law, Beta(k, n + 1 - k), lies below
    with a probability of at most 0.05 (`threshold_of`).
    """
    return tpr - (1.0 - tpr) / 2.0


def threshold_of(scores: NDArray[np.float64], tpr: float) -> float:
    r"""The smallest threshold below which a further brittle point scores with probability `tpr` or more.

    $$\tau = s_{(k)} + \mathrm{ulp}, \qquad k = \lceil \mathrm{tpr}\,(n + 1) \rceil,$$

    with `s_(1) <= ... <= s_(n)` the scores of the calibration points: the next double above `s_(k)`, because what
    equals the threshold is not flagged. Ties need no care: `s < tau` is `s <= s_(k)`.

    A score is minus infinity where the point is flagged at every threshold; where `s_(k)` is, no threshold would do.

    Validity: for `n` points exchangeable with the further one, `P(s < tau) >= k / (n + 1) >= tpr`, over the draw of all
    `n + 1` points; with continuous scores the rate for one calibration is Beta(k, n + 1 - k).

    References:
        Algorithmic learning in a random world, Vladimir Vovk, Alexander Gammerman and Glenn Shafer, 2005, chapter 2.
    """
    needed = points_needed(tpr)
    if scores.size < needed:
        raise DataError(
            "too_few_points",
            f"a true positive rate of {tpr} needs {needed} brittle points to calibrate on; found {scores.size}",
        )
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


def calibrate(
    points: KnownPoints, scores: NDArray[np.float64], tpr: float, confidence: float, seed: int
) -> tuple[float, Counts, Judgement]:
    """The threshold of half of the brittle points, what it does on the other half and all robust ones, and a verdict.

    Undecided points choose nothing: the rates count them either way, that of the true positives the half that lies on
    the side of the check. Scores are larger where safer; what is not finite counts as minus infinity.
    """
    values, rng = np.where(np.isfinite(scores), scores, -np.inf), np.random.default_rng(seed)
    (ours, held_out), (_, undecided) = (
        np.array_split(rng.permutation(np.flatnonzero(kind)), 2) for kind in (points.brittle, points.undecided)
    )
    needed, left = 2 * points_needed(tpr), ours.size + held_out.size
    if left < needed:
        raise DataError(
            "too_few_points",
            f"a true positive rate of {tpr} needs {needed} brittle points, half of them to calibrate on and half to "
            f"check; found {left}{left_out_text(points.left_out)}; score more points, or choose more noise "
            f"or a larger epsilon, a higher limit or a smaller rate",
        )
    threshold = threshold_of(values[ours], tpr)
    flags = flagged(values, threshold)
    counts = Counts(
        **points.left_out,
        brittle=left,
        robust=int(points.robust.sum()),
        undecided=int(points.undecided.sum()),
        without_score=int(np.isinf(values).sum()),
        flagged_brittle=int(flags[held_out].sum()),
        flagged_robust=int(flags[points.robust].sum()),
        flagged_undecided=int(flags[points.undecided].sum()),
        flagged_undecided_held_out=int(flags[undecided].sum()),
    )
    return threshold, counts, judge(points.truth, values, points.brittle, points.robust, confidence)


def judge(
    truth: NDArray[np.float64],
    scores: NDArray[np.float64],
    brittle: NDArray[np.bool_],
    robust: NDArray[np.bool_],
    confidence: float,
) -> Judgement:
    """Whether `scores` `[n]`, larger where safer, order points as `truth` `[n]`, and tell brittle from robust ones."""
    order = kendall(truth, scores, confidence)
    value, low, high = auroc(scores[brittle], scores[robust], confidence)
    tau, apart = (None if math.isnan(number) else number for number in (order.value, value))
    return Judgement(tau, order.low, order.high, apart, low, high)


def threshold_verdict(rate: Rate, points: int, tpr: float) -> str:
    """Whether the held-out `rate` of a threshold, chosen with half of `points` brittle points, agrees with `tpr`. The
    rate is that of the decided points alone, which are what the threshold was chosen on."""
    steady = 2 * STEADY * points_needed(tpr)
    enough = f"{steady} make the rate steady, at least {steady_rate(tpr):.4g} in 95% of calibrations"
    if rate.high < tpr:
        end = math.floor(1e4 * rate.high) / 1e4
        return (
            f"misses the rate of {tpr} asked for: the interval of the held-out rate ends at {end:.4f}, because it is "
            f"kept on average over calibrations and this one is unlucky; calibrate on more brittle points (here "
            f"{points}; {enough}), or once more with another seed, but not until one agrees"
        )
    varies = f"; with {points} brittle points the rate of one varies, {enough}" if points < steady else ""
    return f"agrees with the rate of {tpr} asked for, which is an average over calibrations{varies}"


def left_out_text(counts: Mapping[str, int]) -> str:
    """How many points were left out and why, as the end of a sentence; empty where there are none."""
    parts = [f"{count} {reason.replace('_', ' ')}" for reason, count in counts.items() if count]
    return f" (left out: {', '.join(parts)})" if parts else ""


def _exact(rate: float) -> Fraction:
    """A rate as it was written, so that 0.9 is nine tenths."""
    return Fraction(str(rate))
