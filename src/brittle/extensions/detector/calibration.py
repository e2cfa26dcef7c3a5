"""The threshold of a detector from points known to be brittle or robust, its rates, and a verdict on its score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from brittle.analysis.correlation import kendall
from brittle.analysis.detection import auroc
from brittle.errors import DataError
from brittle.extensions.detector.criterion import CalibrationPoints
from brittle.extensions.detector.results import Counts, Judgement, Rate

STEADY = 13  # multiple of the brittle points needed for a rate that makes the rate steady: see `steady_rate`


def points_needed(tpr: float) -> int:
    """Fewest brittle points for a threshold that holds a true positive rate `tpr`: `tpr / (1 - tpr)`, rounded up."""
    return math.ceil(_exact(tpr) / (1 - _exact(tpr)))


def rank_needed(tpr: float, points: int) -> int:
    """Rank among the scores of `points` brittle points, from 1 on, of the one that holds a rate `tpr`."""
    return math.ceil(_exact(tpr) * (points + 1))


def steady_rate(tpr: float) -> float:
    """Rate that one calibration on `STEADY * points_needed(tpr)` points reaches at least 19 times out of 20.

    It misses half as many brittle points again as `tpr` allows: the law of the rate of one calibration,
    Beta(k, n + 1 - k), lies below with a probability of at most 0.05 (`choose_threshold`).
    """
    return tpr - (1.0 - tpr) / 2.0


def choose_threshold(scores: NDArray[np.float64], tpr: float) -> float:
    r"""Return the smallest threshold below which a further brittle point scores with probability `tpr` or more.

    $$\tau = s_{(k)} + \mathrm{ulp}, \qquad k = \lceil \mathrm{tpr}\,(n + 1) \rceil,$$

    with `s_(1) <= ... <= s_(n)` the scores of the calibration points: the next double above `s_(k)`, because a score
    that equals the threshold is not flagged. Ties need no care: `s < tau` is `s <= s_(k)`.

    A score is minus infinity where every threshold flags the point; no threshold suffices where `s_(k)` is.

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
    decisive = np.sort(scores)[rank_needed(tpr, scores.size) - 1]
    if np.isneginf(decisive):
        raise DataError(
            "too_few_points",
            f"{int(np.isneginf(scores).sum())} of {scores.size} brittle points to calibrate on have no score, so that "
            f"no threshold can be chosen for a true positive rate of {tpr}; repair what keeps them from having one, or "
            f"choose another score",
        )
    return float(np.nextafter(decisive, np.inf))


def is_flagged(scores: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Return True unless the score is a finite number that reaches the threshold, `[n]`."""
    return ~(np.isfinite(scores) & (scores >= threshold))


def calibrate(
    points: CalibrationPoints, scores: NDArray[np.float64], tpr: float, confidence: float, seed: int
) -> tuple[float, Counts, Judgement]:
    """Choose the threshold on half of the brittle points, count flags on the other half and all robust ones, and judge.

    The threshold does not depend on undecided points. The rates count these either way: the rate of false positives
    all of them, the rate of true positives the held-out half. Scores are larger where safer; a non-finite one is -inf.
    """
    values, rng = np.where(np.isfinite(scores), scores, -np.inf), np.random.default_rng(seed)
    (calibration, held_out), (_, undecided) = (
        np.array_split(rng.permutation(np.flatnonzero(kind)), 2) for kind in (points.brittle, points.undecided)
    )
    needed, brittle_count = 2 * points_needed(tpr), calibration.size + held_out.size
    if brittle_count < needed:
        raise DataError(
            "too_few_points",
            f"a true positive rate of {tpr} needs {needed} brittle points, half of them to calibrate on and half to "
            f"check; found {brittle_count}{left_out_text(points.left_out)}; score more points, or choose more noise "
            f"or a larger epsilon, a higher limit or a smaller rate",
        )
    threshold = choose_threshold(values[calibration], tpr)
    flags = is_flagged(values, threshold)
    counts = Counts(
        **points.left_out,
        brittle=brittle_count,
        robust=int(points.robust.sum()),
        undecided=int(points.undecided.sum()),
        without_score=int(np.isinf(values).sum()),
        flagged_brittle=int(flags[held_out].sum()),
        flagged_robust=int(flags[points.robust].sum()),
        flagged_undecided=int(flags[points.undecided].sum()),
        flagged_undecided_held_out=int(flags[undecided].sum()),
    )
    return threshold, counts, judge(points.truth, values, points.brittle, points.robust, confidence)


def judge(truth: NDArray, scores: NDArray, brittle: NDArray, robust: NDArray, confidence: float) -> Judgement:
    """Compare the order of `scores` `[n]`, larger where safer, with `truth` `[n]` and with brittle against robust."""
    order = kendall(truth, scores, confidence)
    area, low, high = auroc(scores[brittle], scores[robust], confidence)
    tau, area = (None if math.isnan(number) else number for number in (order.value, area))
    return Judgement(tau, order.low, order.high, area, low, high)


def judge_threshold(rate: Rate, points: int, tpr: float) -> str:
    """Say whether the held-out `rate` of a threshold, chosen with half of `points` brittle points, agrees with `tpr`.

    The rate counts decided points alone, because the threshold was chosen on these.
    """
    steady = 2 * STEADY * points_needed(tpr)
    enough = f"{steady} make the rate steady, at least {steady_rate(tpr):.4g} in 95% of calibrations"
    if rate.high < tpr:
        end = math.floor(1e4 * rate.high) / 1e4
        return (
            f"misses the rate of {tpr} asked for: the interval of the held-out rate ends at {end:.4f}, because the "
            f"rate holds on average over calibrations and this calibration is unlucky; calibrate on more brittle "
            f"points (here {points}; {enough}), or once more with another seed, but not until a calibration agrees"
        )
    varies = f"; with {points} brittle points the rate of a calibration varies, {enough}" if points < steady else ""
    return f"agrees with the rate of {tpr} asked for, which is an average over calibrations{varies}"


def left_out_text(counts: Mapping[str, int]) -> str:
    """Return the numbers of points left out and the reasons, as the end of a sentence; empty if there are none."""
    parts = [f"{count} {reason.replace('_', ' ')}" for reason, count in counts.items() if count]
    return f" (left out: {', '.join(parts)})" if parts else ""


def _exact(rate: float) -> Fraction:
    """Return the decimal fraction that the shortest form of `rate` writes, so that 0.9 is nine tenths."""
    return Fraction(str(rate))
