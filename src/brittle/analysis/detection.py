"""Detection by a score of the points that a small perturbation can flip."""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, expit, logit

from brittle.analysis.correlation import GROUPS, jackknife_half, paired
from brittle.estimate import CONFIDENCE
from brittle.intervals import check_confidence, clopper_pearson, student
from brittle.text import check_epsilon

TPR = 0.95  # true positive rate at which the false positive rate is read
GOOD_AUROC = 0.9  # consistent networks of the paper have a lower end above, the two others below


@dataclass(frozen=True)
class Detection:
    """Quality of a score that separates non-robust points, the positive class, from robust ones.

    Attributes:
        epsilon: a point is non-robust when its margin is at most this.
        points: points with a margin and a score.
        dropped: points left out because either is missing.
        positives: non-robust points.
        auroc, auroc_low, auroc_high: probability that a non-robust point scores lower than a robust one, ties half.
        aupr, aupr_low, aupr_high: average precision; 1 is perfect, the share of positives chance.
        fpr_at_95_tpr, fpr_low, fpr_high: share of the robust points below the score that 95% of the others do not pass.
        confidence: of each interval.
        reason: why nothing can be told apart, where a class is empty; the measures are then NaN.
    """

    epsilon: float
    points: int
    dropped: int
    positives: int
    auroc: float
    auroc_low: float
    auroc_high: float
    aupr: float
    aupr_low: float
    aupr_high: float
    fpr_at_95_tpr: float
    fpr_low: float
    fpr_high: float
    confidence: float
    reason: str | None = None


_Measured = tuple[float, float, float]  # a value and the ends of its interval

_UNKNOWN = (math.nan, 0.0, 1.0)


def detection(margin: ArrayLike, score: ArrayLike, epsilon: float, confidence: float = CONFIDENCE) -> Detection:
    r"""AUROC, AUPR and FPR at 95% TPR of a score that detects points with a margin of at most `epsilon`.

    With scores `s+` of the `m` non-robust and `s-` of the `n` robust points, and the share of points with a score of at
    most `t` that are non-robust as the precision at `t`,

    $$\mathrm{AUROC} = P(s^+ < s^-) + P(s^+ = s^-)/2, \quad \mathrm{AUPR} = \frac1m \sum_{i=1}^m
    \mathrm{precision}(s^+_i), \quad \mathrm{FPR} = P(s^- \le s^+_{(\lceil 0.95 m \rceil)}).$$

    Intervals: AUROC, DeLong's variance; AUPR, the jackknife over points (`jackknife_half`); both on the scale of the
    logit, with Student's quantile for the smaller class, and Clopper-Pearson's bound where all are told apart. FPR:
    exact binomial bounds at every threshold that may be the 95% quantile of the positives, weighed by its binomial law;
    with fewer than about 100 positives its upper end is 1 at 99%.

    Validity: the intervals cover the sampling of points, drawn independently, not the error of the margins. AUROC's is
    first order in the size of the smaller class: of 99% intervals, 98.5% and more hold the truth up to an AUROC of
    0.92, about 97% at 0.993 with 100 points in the smaller class.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 2.3, https://arxiv.org/abs/2406.18451
        Comparing the areas under two or more correlated receiver operating characteristic curves, Elizabeth DeLong,
        David DeLong and Daniel Clarke-Pearson, 1988.
        Area under the precision-recall curve: point estimates and confidence intervals, Kendrick Boyd, Kevin Eng and
        David Page, 2013.

    Args:
        margin: distance to the nearest input with another prediction, `[n]`; may be infinite; NaN or None is left out.
        score: larger where safer, `[n]`; NaN or None is left out.
        epsilon: perturbation size, in the unit of `margin`.
        confidence: two-sided coverage, such as 0.99.

    Raises:
        ParameterError: the arrays differ in length, epsilon is negative, or the confidence not between 0 and 1.

    Example:
        >>> detection([0.1, 0.2, 0.3, 0.4], [1.0, 3.0, 2.0, 4.0], epsilon=0.2).auroc
        0.75
    """
    check_confidence(confidence)
    (margins, scores), dropped = paired(margin=margin, score=score)
    fragile = margins <= check_epsilon(epsilon)
    reason = _reason(fragile, epsilon)
    measures = (_auroc, _aupr, _fpr_at_tpr)
    auroc, aupr, fpr = (_UNKNOWN if reason else measure(scores, fragile, confidence) for measure in measures)
    return Detection(float(epsilon), margins.size, dropped, int(fragile.sum()), *auroc, *aupr, *fpr, confidence, reason)


def auroc(positives: ArrayLike, negatives: ArrayLike, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """AUROC of a score, larger where safer, as `detection` measures it: the value and both ends of its interval.

    Args:
        positives: scores of the points to be detected, `[m]`.
        negatives: scores of the others, `[n]`; NaN in [0, 1] where either is empty.
        confidence: two-sided coverage, such as 0.99.

    Example:
        >>> auroc([1.0, 3.0], [2.0, 4.0])[0]
        0.75
    """
    check_confidence(confidence)
    fragile, robust = (np.asarray(scores, dtype=np.float64) for scores in (positives, negatives))
    if not (fragile.size and robust.size):
        return _UNKNOWN
    return _auroc(np.concatenate([fragile, robust]), np.arange(fragile.size + robust.size) < fragile.size, confidence)


def _reason(fragile: NDArray[np.bool_], epsilon: float) -> str | None:
    if fragile.size == 0:
        return "No point has both a margin and a score."
    if not fragile.any():
        return f"Every margin is larger than {epsilon:g}, so there is no non-robust point to detect."
    if fragile.all():
        return f"Every margin is at most {epsilon:g}, so there is no robust point to tell apart."
    return None


def _auroc(scores: NDArray[np.float64], fragile: NDArray[np.bool_], confidence: float) -> _Measured:
    """DeLong: a point's part is the share of the other class that it is on the right side of."""
    ranks = scipy.stats.rankdata(scores)
    negatives_below = ranks[fragile] - scipy.stats.rankdata(scores[fragile])
    positives_below = ranks[~fragile] - scipy.stats.rankdata(scores[~fragile])
    m, n = negatives_below.size, positives_below.size
    value = float(positives_below.mean() / m)
    if min(m, n) < 2 or value in (0.0, 1.0):
        return _faultless(value, min(m, n), confidence)
    variance = (negatives_below / n).var(ddof=1) / m + (positives_below / m).var(ddof=1) / n
    return _on_logit(value, student(min(m, n), confidence) * math.sqrt(variance), min(m, n), confidence)


def _aupr(scores: NDArray[np.float64], fragile: NDArray[np.bool_], confidence: float) -> _Measured:
    value, smaller = average_precision(scores, fragile), int(min(fragile.sum(), (~fragile).sum()))
    if smaller < 2 or value >= 1.0:
        return _faultless(value, smaller, confidence)
    half = jackknife_half(average_precision, scores, fragile, confidence=confidence)
    widen = student(smaller, confidence) / student(min(GROUPS, scores.size), confidence)
    return _on_logit(value, max(widen, 1.0) * half, smaller, confidence)


def average_precision(scores: NDArray[np.float64], fragile: NDArray[np.bool_]) -> float:
    """Mean precision at the scores of the non-robust points; NaN without any."""
    values, group = np.unique(scores, return_inverse=True)
    called = np.cumsum(np.bincount(group, minlength=values.size))
    hits = np.cumsum(np.bincount(group[fragile], minlength=values.size))
    return float((hits / called)[group[fragile]].mean()) if fragile.any() else math.nan


def _fpr_at_tpr(scores: NDArray[np.float64], fragile: NDArray[np.bool_], confidence: float) -> _Measured:
    """Return the rate at the 95% quantile of the positives, which lies after the `j`-th with binomial probability."""
    positives, negatives = np.sort(scores[fragile]), np.sort(scores[~fragile])
    m, n = positives.size, negatives.size
    passed = np.append(np.searchsorted(negatives, positives, side="right"), n)
    smallest = int(np.searchsorted(np.arange(1, m + 1) / m, TPR))
    weights, tail = scipy.stats.binom.pmf(np.arange(m + 1), m, TPR), (1.0 - confidence) / 2.0
    value = float(passed[smallest] / n)
    low = _mixed_bound(weights, np.concatenate([[0], passed[:-1]]), n, tail)
    return value, min(low, value), max(1.0 - _mixed_bound(weights, n - passed, n, tail), value)


def _mixed_bound(weights: NDArray[np.float64], successes: NDArray[np.int64], trials: int, tail: float) -> float:
    """Return the `tail` quantile of a mixture of the laws whose quantiles are Clopper-Pearson's lower bounds."""
    none = successes == 0
    surely_zero = float(weights[none].sum())
    if surely_zero >= tail:
        return 0.0
    likely = ~none & (weights > 1e-12)
    weight, k = weights[likely], successes[likely].astype(np.float64)

    def excess(bound: float) -> float:
        return surely_zero + float(weight @ betainc(k, trials - k + 1.0, bound)) - tail

    return scipy.optimize.brentq(excess, 0.0, 1.0, xtol=1e-10) if excess(1.0) > 0.0 else 1.0


def _on_logit(value: float, half: float, trials: int, confidence: float) -> _Measured:
    """`value` with the interval that is `half` wide to first order and symmetric on the scale of the logit."""
    if half == 0.0:
        return _faultless(value, trials, confidence)
    centre, width = float(logit(value)), half / (value * (1.0 - value))
    return value, float(expit(centre - width)), float(expit(centre + width))


def _faultless(value: float, trials: int, confidence: float) -> _Measured:
    """`value` with the bound of `trials` without a fault, for data that show no variation."""
    if value not in (0.0, 1.0):
        return value, 0.0, 1.0
    bound = float(clopper_pearson(trials, trials, confidence)[0]) if trials > 1 else 0.0
    return value, bound * value, 1.0 - bound * (1.0 - value)
