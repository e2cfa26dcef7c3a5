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

from brittle.analysis import Detection, auroc, detection, detection_curve
from brittle.errors import ParameterError

REPLICATES, MOST_MISSES, CONFIDENCE = 300, 13, 0.99


def tied(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Margins in tenths and scores in integers that lean on them."""
    generator = np.random.default_rng(seed)
    margin = generator.integers(0, 10, size) / 10.0
    return margin, np.round(6.0 * margin + generator.normal(0.0, 2.0, size))


def binormal(size: int, share: float, gap: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Margins 0 and 1 of a share of non-robust points, whose normal scores are `gap` lower."""
    generator = np.random.default_rng(seed)
    robust = generator.random(size) >= share
    return robust.astype(float), generator.standard_normal(size) + gap * robust


def binormal_truth(share: float, gap: float) -> tuple[float, float, float]:
    """AUROC, AUPR and FPR at 95% TPR of `binormal`."""
    at = np.linspace(-9.0, 9.0, 100_001)
    hits, alarms = share * norm.cdf(at), (1.0 - share) * norm.cdf(at - gap)
    aupr = trapezoid(hits / (hits + alarms) * norm.pdf(at), at)
    return float(norm.cdf(gap / math.sqrt(2.0))), float(aupr), float(norm.cdf(norm.ppf(0.95) - gap))


def measures(found: Detection) -> list[tuple[float, float, float]]:
    """Each measure with its interval: `(low, value, high)`."""
    return [
        (found.auroc_low, found.auroc, found.auroc_high),
        (found.aupr_low, found.aupr, found.aupr_high),
        (found.fpr_low, found.fpr_at_95_tpr, found.fpr_high),
    ]


# Values


def test_a_consistent_score_is_perfect_at_every_epsilon() -> None:
    """Theorem 1 of the paper, one way."""
    margin = np.random.default_rng(0).gamma(2.0, size=200)
    frame = detection_curve(margin, np.sqrt(margin))
    assert len(frame) == 10
    assert frame["auroc"].tolist() == frame["aupr"].tolist() == [1.0] * 10
    assert frame["fpr_at_95_tpr"].tolist() == [0.0] * 10
    assert (frame["auroc_low"] < 1.0).all()


def test_an_inconsistent_score_fails_at_some_epsilon() -> None:
    """And the other: one pair out of order is seen between its margins."""
    margin, score = np.arange(1.0, 9.0), np.array([1.0, 2.0, 3.0, 5.0, 4.0, 6.0, 7.0, 8.0])
    frame = detection_curve(margin, score, margin[:-1].tolist())
    assert frame.loc[frame["auroc"] < 1.0, "epsilon"].tolist() == [4.0]


@pytest.mark.parametrize("size", [8, 40, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_ties_count_as_in_scikit_learn(size: int, seed: int) -> None:
    margin, score = tied(size, seed)
    fragile = margin <= 0.3
    found = detection(margin, score, 0.3)
    fpr, tpr, _ = metrics.roc_curve(fragile, -score, drop_intermediate=False)
    assert found.positives == fragile.sum()
    assert found.auroc == pytest.approx(metrics.roc_auc_score(fragile, -score), abs=1e-12)
    assert found.aupr == pytest.approx(metrics.average_precision_score(fragile, -score), abs=1e-12)
    assert found.fpr_at_95_tpr == pytest.approx(fpr[np.argmax(tpr >= 0.95)], abs=1e-12)


def test_the_auroc_of_two_classes_is_that_of_their_margins() -> None:
    rng = np.random.default_rng(3)
    ours, others = rng.integers(0, 6, 30).astype(float), rng.integers(2, 9, 50).astype(float)
    found = detection([0.0] * 30 + [1.0] * 50, [*ours, *others], 0.5, 0.9)
    assert auroc(ours, others, 0.9) == (found.auroc, found.auroc_low, found.auroc_high)
    assert found.auroc == pytest.approx(metrics.roc_auc_score([1] * 30 + [0] * 50, [*-ours, *-others]))
    for empty in (auroc([], others), auroc(ours, [])):
        assert math.isnan(empty[0])
        assert empty[1:] == (0.0, 1.0)
    with pytest.raises(ParameterError):
        auroc(ours, others, 1.0)


def test_monotone_transformations_change_nothing() -> None:
    margin, score = tied(100, 0)
    assert detection(margin, np.exp(score), 0.3) == detection(margin, score, 0.3)
    assert detection(margin, -score, 0.3).auroc == pytest.approx(1.0 - detection(margin, score, 0.3).auroc)


def test_a_margin_of_epsilon_is_not_robust() -> None:
    assert detection([0.1, 0.2, 0.3], [1.0, 2.0, 3.0], 0.2).positives == 2


def test_missing_numbers_are_left_out_and_counted() -> None:
    found = detection([0.1, None, math.inf, 0.2, math.nan], [1.0, 1.0, 2.0, None, 1.0], 0.15)  # pyright: ignore[reportArgumentType] None is no number
    assert (found.points, found.dropped, found.positives, found.auroc) == (2, 3, 1, 1.0)


@pytest.mark.parametrize(
    ("margin", "epsilon", "reason"),
    [([], 0.1, "No point"), ([math.inf] * 3, 0.1, "no non-robust"), ([0.1] * 3, 0.1, "no robust")],
)
def test_an_empty_class_is_a_reason(margin: list[float], epsilon: float, reason: str) -> None:
    found = detection(margin, np.arange(len(margin)), epsilon)
    assert found.reason is not None
    assert reason in found.reason
    assert all(math.isnan(value) and (low, high) == (0.0, 1.0) for low, value, high in measures(found))


def test_a_curve_without_finite_margins_is_empty() -> None:
    frame = detection_curve([math.inf, math.inf], [1.0, 2.0])
    assert len(frame) == 0
    assert "auroc" in frame


@pytest.mark.parametrize(
    ("score", "epsilon", "confidence"), [([1.0, 2.0], 0.1, 0.99), ([1.0], -0.1, 0.99), ([1.0], math.nan, 0.99)]
)
def test_misuse(score: list[float], epsilon: float, confidence: float) -> None:
    with pytest.raises(ParameterError, match="found"):
        detection([1.0], score, epsilon, confidence)


# Intervals


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [3, 6, 30])
def test_intervals_hold_their_value_and_stay_in_the_range(size: int, seed: int) -> None:
    margin, score = tied(size, seed)
    found = detection(margin, score, 0.4)
    if found.reason is None:
        assert all(0.0 <= low <= value <= high <= 1.0 for low, value, high in measures(found))


@pytest.mark.parametrize(("size", "share", "gap"), [(100, 0.3, 1.0), (400, 0.1, 1.5)])
def test_intervals_cover(size: int, share: float, gap: float) -> None:
    found = [detection(*binormal(size, share, gap, seed), 0.5, CONFIDENCE) for seed in range(REPLICATES)]
    intervals = np.array([measures(one) for one in found])
    truth = np.array(binormal_truth(share, gap))
    misses = ((truth < intervals[:, :, 0]) | (truth > intervals[:, :, 2])).sum(0)
    assert (misses <= MOST_MISSES).all()
    halved = intervals[:, :2, [0, 2]] / 2.0 + intervals[:, :2, [1]] / 2.0
    assert ((truth[:2] < halved[:, :, 0]) | (truth[:2] > halved[:, :, 1])).sum(0).min() > 2 * MOST_MISSES


def test_the_fpr_of_many_points_is_known_narrowly() -> None:
    found = detection(*binormal(20_000, 0.5, 2.0, 0), 0.5)
    assert found.fpr_low < binormal_truth(0.5, 2.0)[2] < found.fpr_high
    assert found.fpr_high - found.fpr_low < 0.06


def test_few_positives_do_not_bound_the_fpr() -> None:
    assert detection(*binormal(1000, 0.05, 3.0, 0), 0.5).fpr_high == 1.0
