"""Detection: perfect and useless scores, scikit-learn's answers, and coverage.

At 99% confidence 3 misses in 300 replicates are expected; more than 13 happen by chance once in 1e5 for a correct
interval.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm
from sklearn import metrics

from brittle.analysis import detection
from brittle.analysis.detection import Detection
from brittle.errors import ParameterError

REPLICATES, MOST_MISSES, CONFIDENCE = 300, 13, 0.99


def draw_ties(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw margins in tenths and integer scores that depend on them."""
    generator = np.random.default_rng(seed)
    margin = generator.integers(0, 10, size) / 10.0
    return margin, np.round(6.0 * margin + generator.normal(0.0, 2.0, size))


def draw_binormal(size: int, share: float, gap: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw margins 0 and 1, a share non-robust, whose normal scores are `gap` lower."""
    generator = np.random.default_rng(seed)
    robust = generator.random(size) >= share
    return robust.astype(float), generator.standard_normal(size) + gap * robust


def binormal_truth(share: float, gap: float) -> tuple[float, float, float]:
    """Return AUROC, AUPR and FPR at 95% TPR of `draw_binormal`."""
    at = np.linspace(-9.0, 9.0, 100_001)
    hits, alarms = share * norm.cdf(at), (1.0 - share) * norm.cdf(at - gap)
    aupr = trapezoid(hits / (hits + alarms) * norm.pdf(at), at)
    return float(norm.cdf(gap / math.sqrt(2.0))), float(aupr), float(norm.cdf(norm.ppf(0.95) - gap))


def measures(result: Detection) -> list[tuple[float, float, float]]:
    """Return every measure with its interval: `(low, value, high)`."""
    return [
        (result.auroc_low, result.auroc, result.auroc_high),
        (result.aupr_low, result.aupr, result.aupr_high),
        (result.fpr_low, result.fpr_at_95_tpr, result.fpr_high),
    ]


# Values


def test_a_consistent_score_is_perfect_at_every_epsilon() -> None:
    """Theorem 1 of the paper, in one direction."""
    margin = np.random.default_rng(0).gamma(2.0, size=200)
    for epsilon in np.quantile(margin, np.linspace(0.05, 0.95, 10)):
        result = detection(margin, np.sqrt(margin), float(epsilon))
        assert (result.auroc, result.aupr, result.fpr_at_95_tpr) == (1.0, 1.0, 0.0)
        assert result.auroc_low < 1.0


@pytest.mark.parametrize(("size", "seed"), [(8, 0), (40, 1), (1000, 2)])
def test_ties_count_as_in_scikit_learn(size: int, seed: int) -> None:
    margin, score = draw_ties(size, seed)
    fragile = margin <= 0.3
    result = detection(margin, score, 0.3)
    fpr, tpr, _ = metrics.roc_curve(fragile, -score, drop_intermediate=False)
    assert result.positives == fragile.sum()
    assert result.auroc == pytest.approx(metrics.roc_auc_score(fragile, -score), abs=1e-12)
    assert result.aupr == pytest.approx(metrics.average_precision_score(fragile, -score), abs=1e-12)
    assert result.fpr_at_95_tpr == pytest.approx(fpr[np.argmax(tpr >= 0.95)], abs=1e-12)


def test_missing_numbers_are_left_out_and_counted() -> None:
    result = detection([0.1, None, math.inf, 0.2, math.nan], [1.0, 1.0, 2.0, None, 1.0], 0.15)  # pyright: ignore[reportArgumentType] None is no number
    assert (result.points, result.dropped, result.positives, result.auroc) == (2, 3, 1, 1.0)


@pytest.mark.parametrize(
    ("margin", "epsilon", "reason"),
    [([], 0.1, "No point"), ([math.inf] * 3, 0.1, "no non-robust"), ([0.1] * 3, 0.1, "no robust")],
)
def test_an_empty_class_is_a_reason(margin: list[float], epsilon: float, reason: str) -> None:
    result = detection(margin, np.arange(len(margin)), epsilon)
    assert result.reason is not None
    assert reason in result.reason
    assert all(math.isnan(value) and (low, high) == (0.0, 1.0) for low, value, high in measures(result))


@pytest.mark.parametrize(
    ("score", "epsilon", "confidence"), [([1.0, 2.0], 0.1, 0.99), ([1.0], -0.1, 0.99), ([1.0], math.nan, 0.99)]
)
def test_misuse(score: list[float], epsilon: float, confidence: float) -> None:
    with pytest.raises(ParameterError, match="found"):
        detection([1.0], score, epsilon, confidence)


# Intervals


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [3, 30])
def test_intervals_hold_their_value_and_stay_in_the_range(size: int, seed: int) -> None:
    margin, score = draw_ties(size, seed)
    result = detection(margin, score, 0.4)
    if result.reason is None:
        assert all(0.0 <= low <= value <= high <= 1.0 for low, value, high in measures(result))


def test_intervals_cover() -> None:
    size, share, gap = 100, 0.3, 1.0
    results = [detection(*draw_binormal(size, share, gap, seed), 0.5, CONFIDENCE) for seed in range(REPLICATES)]
    intervals = np.array([measures(result) for result in results])
    truth = np.array(binormal_truth(share, gap))
    misses = ((truth < intervals[:, :, 0]) | (truth > intervals[:, :, 2])).sum(0)
    assert (misses <= MOST_MISSES).all()
    halved = intervals[:, :2, [0, 2]] / 2.0 + intervals[:, :2, [1]] / 2.0
    assert ((truth[:2] < halved[:, :, 0]) | (truth[:2] > halved[:, :, 1])).sum(0).min() > 2 * MOST_MISSES
