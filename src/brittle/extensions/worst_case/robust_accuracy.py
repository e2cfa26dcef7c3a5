"""The share of points that are right and stay right, from margins on all of them or on a few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brittle.analysis.correlation import one_length, paired
from brittle.analysis.mean_interval import MeanInterval, joined, ranged_interval
from brittle.errors import ParameterError
from brittle.estimate import CONFIDENCE
from brittle.intervals import check_confidence, clopper_pearson
from brittle.text import check_epsilon

MIN_TPR = 0.80  # share of the subset's non-robust points that a threshold must find, as in the paper


@dataclass(frozen=True)
class RobustAccuracy:
    """Share of points that are classified correctly and whose margin is larger than epsilon.

    Attributes:
        epsilon: the perturbation size.
        points: points with a margin and a label.
        dropped: points left out because either is missing.
        accuracy: share of the points that are correct; NaN without points.
        robust_accuracy: share that are correct with a larger margin; NaN without points.
        low: lower end of its interval.
        high: upper end.
        confidence: confidence of the interval.
    """

    epsilon: float
    points: int
    dropped: int
    accuracy: float
    robust_accuracy: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class EstimatedRobustAccuracy:
    """The robust accuracy of many points from the margins of a few and the scores of all.

    Attributes:
        epsilon: the perturbation size.
        points: points with a score and a label, `N`.
        dropped: points left out because either is missing.
        subset_points: points of the subset with a margin too, `n`.
        threshold: points with a larger score count as robust; `-inf` if the whole subset is robust, `inf` if none is.
        tpr: share of the subset's non-robust points at or below the threshold; NaN without such points.
        subset: robust accuracy of the subset, by its margins.
        estimate: Algorithm 1: share of all points that are correct with a score above the threshold.
        rectified: the estimate, corrected by its error on the subset.
        low: lower end of the interval of `rectified`.
        high: upper end.
        confidence: confidence of the interval.
        reason: why there is no estimate, if the subset is empty (the numbers are then NaN); None otherwise.
    """

    epsilon: float
    points: int
    dropped: int
    subset_points: int
    threshold: float
    tpr: float
    subset: float
    estimate: float
    rectified: float
    low: float
    high: float
    confidence: float
    reason: str | None = None


def direct_robust_accuracy(
    margin: ArrayLike, correct: ArrayLike, epsilon: float, confidence: float = CONFIDENCE
) -> RobustAccuracy:
    """Return the share of points that are correct with a margin above `epsilon`, with its Clopper-Pearson interval.

    Validity: the interval is exact for points drawn independently; margins of attacks and their share are upper bounds.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 3.1, https://arxiv.org/abs/2406.18451

    Args:
        margin: distance to the nearest input with another prediction, `[n]`; may be infinite; NaN or None is left out.
        correct: True where the prediction is the label, `[n]`; None or NaN, without a label, is left out.
        epsilon: perturbation size, in the unit of `margin`.
        confidence: two-sided coverage, such as 0.99.

    Raises:
        ParameterError: the arrays differ in length, epsilon is negative, or the confidence not between 0 and 1.

    Example:
        >>> direct_robust_accuracy([0.1, 0.2, 0.3, 0.4], [True, True, True, False], epsilon=0.15).robust_accuracy
        0.5
    """
    return direct_robust_accuracies(margin, correct, [epsilon], confidence)[0]


def direct_robust_accuracies(
    margin: ArrayLike, correct: ArrayLike, epsilons: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[RobustAccuracy, ...]:
    """Compute `direct_robust_accuracy` at several perturbation sizes, faster than by separate calls."""
    check_confidence(confidence)
    (margins, correct_numbers), dropped = paired(margin=margin, correct=correct)
    sizes, points = [*map(check_epsilon, epsilons)], margins.size
    if not points:
        return tuple(RobustAccuracy(size, 0, dropped, math.nan, math.nan, 0.0, 1.0, confidence) for size in sizes)
    correct_margins = np.sort(margins[correct_numbers > 0.0])
    counts = correct_margins.size - np.searchsorted(correct_margins, sizes, side="right")
    shares = np.array([counts / points, *clopper_pearson(counts, points, confidence)]).T.tolist()
    return tuple(
        RobustAccuracy(size, points, dropped, correct_margins.size / points, share, low, high, confidence)
        for size, (share, low, high) in zip(sizes, shares, strict=True)
    )


def estimate_robust_accuracy(
    margin: ArrayLike,
    score: ArrayLike,
    correct: ArrayLike,
    epsilon: float,
    subset: ArrayLike,
    confidence: float = CONFIDENCE,
    min_tpr: float = MIN_TPR,
) -> EstimatedRobustAccuracy:
    r"""Estimate the robust accuracy of `N` points from the margins of `n` of them, by Algorithm 1 of the paper.

    With `y = [correct and margin > epsilon]` and `g = [correct and score > threshold]`, the threshold is the one with
    the subset's mean of `g` nearest to its mean of `y`, among thresholds that find at least `min_tpr` of its non-robust
    points; among equally near thresholds, the one that misjudges the fewest points of the subset. It lies midway
    between two scores of the subset. Then

    $$\mathrm{estimate} = \frac1N \sum_{i \le N} g_i, \qquad
    \mathrm{rectified} = \mathrm{estimate} + \frac1n \sum_{i \in \mathrm{subset}} (y_i - g_i).$$

    The two differ by more than one point of the subset only if `min_tpr` binds, because the score is poor; the estimate
    is then biased and the rectified estimate is not, and may be less precise than the subset's mean of `y`. The
    interval is that of the rectified estimate, whether or not it contains the estimate. With `f = n / N` it is the sum
    of the subset's mean of `y - (1 - f) g` (interval: `mean_interval`) and `(1 - f)` times the mean of `g` over the
    other points (Clopper-Pearson), which are independent; their half-widths add in quadrature.

    Validity: for a subset drawn uniformly at random. The interval covers the robust accuracy, by the margins, of the
    population of the points: the sampling of the subset, the choice of the threshold (to first order: it solves the
    equation whose error is the first mean) and the sampling of the `N`. It does not cover the error of the margins.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 2.4, Algorithm 1, https://arxiv.org/abs/2406.18451
        Prediction-powered inference, Anastasios Angelopoulos et al., 2023, https://arxiv.org/abs/2301.09633
        Construction of confidence limits about effect measures, Guang Yong Zou and Allan Donner, 2008.

    Args:
        margin: distance to the nearest input with another prediction, `[N]`; read on the subset alone, elsewhere it
            may be NaN; a point of the subset without a margin leaves the subset.
        score: larger where safer, `[N]`.
        correct: True where the prediction is the label, `[N]`; a point without a score or label is left out.
        epsilon: perturbation size, in the unit of `margin`.
        subset: positions of the points whose margins are read, `[n]` integers, or a mask `[N]`.
        confidence: two-sided coverage, such as 0.99.
        min_tpr: share of the subset's non-robust points that the threshold must find.

    Raises:
        ParameterError: the lengths differ, the subset is no set of positions, or epsilon or confidence is wrong.

    Example:
        >>> margin, score, correct = [0.1, 0.2, 0.3, 0.4, None, None], [1, 2, 3, 4, 1.5, 3.5], [True] * 6
        >>> estimate_robust_accuracy(margin, score, correct, epsilon=0.25, subset=[0, 1, 2, 3]).estimate
        0.5
    """
    check_confidence(confidence)
    check_epsilon(epsilon)
    margins, scores, correct_numbers = one_length(margin=margin, score=score, correct=correct)
    usable = ~np.isnan(scores) & ~np.isnan(correct_numbers)
    in_subset = (_mask(subset, margins.size) & ~np.isnan(margins))[usable]
    margins, scores, is_correct = margins[usable], scores[usable], correct_numbers[usable] > 0.0
    numbers = (math.nan, math.nan, math.nan, math.nan, math.nan, 0.0, 1.0)
    if in_subset.any():
        robust = margins[in_subset] > epsilon
        threshold, tpr = _choose_threshold(scores[in_subset], is_correct[in_subset], robust, min_tpr)
        truth, passing = is_correct[in_subset] & robust, is_correct & (scores > threshold)
        estimate = float(passing.mean())
        rectified = min(max(estimate + float(truth.mean() - passing[in_subset].mean()), 0.0), 1.0)
        ends = _interval(truth, passing[in_subset], passing[~in_subset], confidence)
        numbers = (threshold, tpr, float(truth.mean()), estimate, rectified, *ends)
    counts = (scores.size, int((~usable).sum()), int(in_subset.sum()))
    reason = None if in_subset.any() else "No point of the subset has a margin, a score and a label."
    return EstimatedRobustAccuracy(float(epsilon), *counts, *numbers, confidence, reason)


def _mask(subset: ArrayLike, size: int) -> NDArray[np.bool_]:
    rows, mask = np.asarray(subset), np.zeros(size, dtype=bool)
    if rows.dtype == bool and rows.shape == (size,):
        return rows
    if rows.size:
        if rows.dtype.kind not in "iu" or rows.ndim != 1 or rows.min() < 0 or rows.max() >= size:
            raise ParameterError(
                f"the subset must be positions below {size} or a mask of that length; found {subset!r:.80}"
            )
        mask[rows] = True
    return mask


def _choose_threshold(scores: NDArray, correct: NDArray, robust: NDArray, min_tpr: float) -> tuple[float, float]:
    """Return the threshold that best reproduces the robust accuracy, then misjudges the fewest points, and its rate."""
    values, group = np.unique(scores, return_inverse=True)

    def count_below(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count the points of `mask` at or below `-inf` and each score."""
        return np.concatenate([[0], np.cumsum(np.bincount(group[mask], minlength=values.size))])

    fragile = int((~robust).sum())
    fragile_below, robust_below = count_below(~robust), count_below(robust)
    passing = int(correct.sum()) - count_below(correct)
    error = np.abs(passing - int((correct & robust).sum()))
    mistakes = robust_below + fragile - fragile_below
    error = np.where(fragile_below >= min_tpr * fragile, error, scores.size + 1)
    best = int(np.lexsort((mistakes, error))[0])
    ends = np.concatenate([[-math.inf], values, [math.inf]])
    below, above = float(ends[best]), float(ends[best + 1])
    middle = below / 2.0 + above / 2.0
    threshold = math.inf if best == values.size else middle if below <= middle < above else below
    return threshold, float(fragile_below[best] / fragile) if fragile else math.nan


def _interval(truth: NDArray, passing: NDArray, passing_elsewhere: NDArray, confidence: float) -> tuple[float, float]:
    """Return the interval of the rectified estimate, from the parts of the subset and of the others, in quadrature."""
    share = passing_elsewhere.size / (truth.size + passing_elsewhere.size)
    interval = ranged_interval(np.asarray(truth - share * passing, dtype=np.float64), -share, 1.0, confidence)
    if passing_elsewhere.size:
        ends = clopper_pearson(int(passing_elsewhere.sum()), passing_elsewhere.size, confidence)
        interval = joined(interval, MeanInterval(*(share * float(end) for end in (passing_elsewhere.mean(), *ends))))
    return max(interval.low, 0.0), min(interval.high, 1.0)
