"""From points that are known to be brittle or robust to a threshold, what it achieves, and a verdict on its score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from brittle.analysis.correlation import kendall
from brittle.analysis.detection import GOOD_AUROC, auroc
from brittle.detector.known_points import KnownPoints
from brittle.detector.results import Counts, Rate, Verdict, choice_of, halves_of, left_out_sentence
from brittle.errors import DataError, ParameterError
from brittle.intervals import check_confidence
from brittle.store.files.strict_json import MOST_WHOLE

STEADY = 13
"""So many times the brittle points that a rate needs make it steady: see `steady_rate`."""


def check_rate(tpr: float) -> float:
    """`tpr` as a float."""
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


@dataclass(frozen=True)
class Goal:
    """What a detector is asked for.

    Attributes:
        tpr: true positive rate to hold, between 0 and 1.
        confidence: of every interval.
        seed: of the split into points to calibrate on and points to check on.
    """

    tpr: float
    confidence: float
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "tpr", check_rate(self.tpr))
        check_confidence(self.confidence)
        object.__setattr__(self, "confidence", float(self.confidence))
        if not isinstance(self.seed, Integral) or isinstance(self.seed, bool) or not 0 <= self.seed <= MOST_WHOLE:
            raise ParameterError(f"the seed must be at least 0, a whole number; found {self.seed!r:.60}")
        object.__setattr__(self, "seed", int(self.seed))


@dataclass(frozen=True)
class Calibration:
    """What `calibrate` found.

    Attributes:
        score: name of the score that decides.
        threshold: a score below it is brittle.
        true_positives: share of held-out brittle points that are flagged.
        false_positives: share of robust points that are flagged.
        counts: how many points were used for what.
        verdict: whether the score may be trusted.
    """

    score: str
    threshold: float
    true_positives: Rate
    false_positives: Rate
    counts: Counts
    verdict: Verdict


@dataclass(frozen=True)
class Kind:
    """The points of one kind, brittle, robust or undecided, parted by chance.

    Attributes:
        choice: those that the score is chosen on, none where it was named.
        first: half of the others.
        second: the other half of the others.
    """

    choice: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]

    @property
    def left(self) -> NDArray[np.int64]:
        """All that the score was not chosen on."""
        return np.concatenate([self.first, self.second])

    @classmethod
    def of(cls, members: NDArray[np.bool_], choosing: bool, rng: np.random.Generator) -> Kind:
        """The points that are `members`, `[n]`, which stand in an order that the data do not decide."""
        shuffled = rng.permutation(np.flatnonzero(members))
        cut = choice_of(shuffled.size) if choosing else 0
        middle = cut + halves_of(shuffled.size - cut)[0]
        return cls(shuffled[:cut], shuffled[cut:middle], shuffled[middle:])


def calibrate(
    points: KnownPoints, scores: Mapping[str, NDArray[np.float64]], goal: Goal, wider: str = "a larger epsilon"
) -> Calibration:
    """Choose the threshold on half of the brittle points, and check it on the other half and on all robust points.

    Of several scores the one with the largest AUROC on a fifth of the points of each kind is chosen, and these points
    serve for nothing else. Undecided points choose nothing: the rates count them either way, that of the true positives
    the half that lies on the side of the check.

    Args:
        points: with what is known of them.
        scores: each `[n]`, larger where safer; what is not finite counts as minus infinity.
        goal: what is asked for.
        wider: what would make more points brittle, for a message.
    """
    scores = {name: np.where(np.isfinite(values), values, -np.inf) for name, values in scores.items()}
    rng = np.random.default_rng(goal.seed)
    brittle, undecided, robust = (
        Kind.of(kind, len(scores) > 1, rng) for kind in (points.brittle, points.undecided, points.robust)
    )
    _check_enough(brittle, points, goal, wider)
    chosen = max(scores, key=lambda name: _told_apart(scores[name], brittle.choice, robust.choice))
    values = scores[chosen]
    threshold = threshold_of(values[brittle.first], goal.tpr)
    flags = flagged(values, threshold)
    unseen = np.sort(np.concatenate([brittle.left, undecided.left, robust.left]))
    kinds = (points.brittle[unseen], points.robust[unseen])
    return Calibration(
        score=chosen,
        threshold=threshold,
        true_positives=Rate.of(flags[brittle.second], goal.confidence, flags[undecided.second]),
        false_positives=Rate.of(flags[robust.left], goal.confidence, flags[undecided.left]),
        counts=Counts(
            **vars(points.left_out),
            brittle=int(points.brittle.sum()),
            robust=int(points.robust.sum()),
            undecided=int(points.undecided.sum()),
            without_score=int(np.isinf(values).sum()),
            choice=sum(kind.choice.size for kind in (brittle, undecided, robust)),
            calibration=brittle.first.size,
            held_out=brittle.second.size,
        ),
        verdict=judge(points.truth[unseen], values[unseen], *kinds, goal.confidence),
    )


def judge(
    truth: NDArray[np.float64],
    scores: NDArray[np.float64],
    brittle: NDArray[np.bool_],
    robust: NDArray[np.bool_],
    confidence: float,
) -> Verdict:
    """Whether `scores` `[n]`, larger where safer, order points as `truth` `[n]`, and tell brittle from robust ones."""
    order = kendall(truth, scores, confidence)
    value, low, high = auroc(scores[brittle], scores[robust], confidence)
    return Verdict(
        trusted=not math.isnan(value) and low >= GOOD_AUROC,
        tau=_none_if_nan(order.value),
        tau_low=order.low,
        tau_high=order.high,
        auroc=_none_if_nan(value),
        auroc_low=low,
        auroc_high=high,
    )


def _told_apart(scores: NDArray[np.float64], brittle: NDArray[np.int64], robust: NDArray[np.int64]) -> float:
    """AUROC of a score on some points; one half where a kind has none."""
    value = auroc(scores[brittle], scores[robust])[0]
    return 0.5 if math.isnan(value) else value


def _check_enough(brittle: Kind, points: KnownPoints, goal: Goal, wider: str) -> None:
    """Raise where the brittle points are too few for the rate."""
    needed = 2 * points_needed(goal.tpr)
    if brittle.left.size < needed:
        chosen = f" beside {brittle.choice.size} that choose the score" if brittle.choice.size else ""
        found = f"{brittle.left.size}{chosen}{left_out_sentence(points.left_out)}"
        raise too_few(found, needed, "half of them to calibrate on and half to check", goal.tpr, wider)


def _none_if_nan(number: float) -> float | None:
    return None if math.isnan(number) else number
