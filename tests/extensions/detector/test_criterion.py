"""The class of a point, by margins and by noise, and the calibration on both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers.calibrated import COUNTED, FORWARD, classifier, points, with_kept, with_margins

import brittle
from brittle.errors import DataError, ParameterError
from brittle.extensions.detector.criterion import Criterion
from brittle.extensions.detector.detector import Detector
from brittle.store.table import Table

POINTS = 400
FIXED = {"draws": 200, "sigma": 0.25, "noise": "uniform"}


@pytest.fixture(scope="module")
def run() -> Table:
    """Score a linear classifier by scores of one pass alone."""
    return brittle.score(classifier(), points(POINTS), FORWARD)


def logit_margins(run: Table) -> np.ndarray:
    return run["logit_margin"].value.to_numpy()


def states(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw intervals of `p_robust`: a third below 0.9, a third above it, and a third around it."""
    kind = np.random.default_rng(seed).integers(3, size=count)
    return np.choose(kind, [0.3, 0.92, 0.85]), np.choose(kind, [0.8, 0.99, 0.95])


@pytest.mark.parametrize(
    ("noise", "more"), [(COUNTED, "draws=100000"), (FIXED, "--limit 0.9"), (COUNTED | {"limit": 0.8}, "--limit 0.9")]
)
def test_the_remedy_for_undecided_points_is_draws_or_a_limit(noise: dict[str, Any], more: str) -> None:
    assert more in Criterion(None, 0.9, "monte_carlo", noise).remedy


def test_margins_and_noise_that_agree_give_the_same_detector(run: Table) -> None:
    """Here noise always keeps a prediction whose margin is larger than epsilon, and never the others."""
    margins = np.random.default_rng(0).permutation(np.linspace(0.0, 1.0, POINTS)) + 0.1 * logit_margins(run)
    epsilon = float(np.median(margins))
    worst = Detector.fit(with_margins(run, margins.tolist()), epsilon)
    average = Detector.fit(with_kept(run, (margins > epsilon) * 1.0), limit=0.9)
    assert average.threshold == worst.threshold
    assert (average.true_positives, average.false_positives) == (worst.true_positives, worst.false_positives)
    assert average.counts == worst.counts
    assert (average.verdict.auroc, average.verdict.auroc_low) == (worst.verdict.auroc, worst.verdict.auroc_low)
    assert average.criterion == Criterion(None, 0.9, "monte_carlo", COUNTED)


def test_points_are_counted_by_their_intervals(run: Table) -> None:
    low, high = states(POINTS)
    low[:7] = high[:7] = math.nan
    rule = Detector.fit(with_kept(run, low, high), limit=0.9)
    finite = slice(7, None)
    breaks, holds = int((high[finite] < 0.9).sum()), int((low[finite] > 0.9).sum())
    counts = rule.counts
    assert (counts.brittle, counts.robust, counts.without_number) == (breaks, holds, 7)
    assert counts.undecided == POINTS - 7 - breaks - holds
    flags = rule.flag(logit_margins(run))[finite]
    undecided = (high[finite] > 0.9) & (low[finite] < 0.9)
    false = rule.false_positives
    assert (false.flagged, false.points) == (int(flags[low[finite] > 0.9].sum()), holds)
    assert (false.undecided, false.undecided_flagged) == (int(undecided.sum()), int(flags[undecided].sum()))
    assert rule.true_positives.undecided == counts.undecided // 2
    text = str(rule)
    assert f"{holds} robust, {counts.undecided} undecided (left out: 7 without number)" in text
    assert f"{counts.undecided} of {counts.used} points are undecided; draw more copies of these" in text
    assert "probability below 0.9, by monte_carlo(draws=10000, limit" in text
    assert "verdict on the threshold: without the undecided points it agrees" in text
    assert rule.criterion.size == "limit 0.9 under sigma 0.1"


def test_undecided_points_do_not_move_the_threshold(run: Table) -> None:
    """Nor the shares of the decided points."""
    low, high = states(POINTS)
    undecided = (low < 0.9) & (high > 0.9)
    complete = Detector.fit(with_kept(run, low, high), limit=0.9)
    low[undecided] = high[undecided] = math.nan
    without = Detector.fit(with_kept(run, low, high), limit=0.9)
    assert complete.threshold == without.threshold
    for name in ("true_positives", "false_positives"):
        ours, theirs = getattr(complete, name), getattr(without, name)
        assert ours.without_undecided == theirs
        assert ours.low < theirs.low < theirs.high < ours.high
    assert complete.verdict.auroc == without.verdict.auroc


def test_the_column_is_drawn_for_the_limit_or_named_by_the_user(run: Table) -> None:
    low, high = states(POINTS)
    fixed = {"draws": 1000, "sigma": 0.2}
    two_columns = with_kept(with_kept(run, np.roll(low, 1), np.roll(high, 1), fixed), low, high)

    def noise(**options: Any) -> object:
        return Detector.fit(two_columns, **options).criterion.parameters

    assert noise(limit=0.9) == COUNTED
    assert noise(limit=0.9, column="monte_carlo(draws=1000, sigma=0.2)") == fixed
    assert noise(limit=0.85) == fixed  # a column with enough draws and no limit is representative


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([0.99] * POINTS, None, "0 points are brittle, 400 robust and 0 undecided at limit 0.9"),
        ([0.5] * POINTS, None, "400 points are brittle, 0 robust"),
        ([0.99] * 300 + [0.8] * 100, [0.99] * 300 + [0.95] * 100, "100 undecided .*draws=100000"),
        ([0.5] * 30 + [0.99] * 370, None, "needs 38 brittle points.*found 30"),
    ],
)
def test_a_run_that_cannot_calibrate_is_refused(run: Table, low: list[float], high: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Detector.fit(with_kept(run, low, high), limit=0.9)
    assert caught.value.code == "too_few_points"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epsilon": 0.1, "limit": 0.9},
        *({"limit": limit} for limit in (0.0, 1, "0.9", math.nan)),
        {"limit": 0.9, "column": 3},
        {"limit": 0.9, "norm": "l3"},
        {"limit": 0.9, "score": "moments"},
    ],
    ids=str,
)
def test_options_that_exclude_each_other_are_refused(noise_table: Table, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Detector.fit(noise_table, **options)


def test_scores_that_no_noise_measures_are_refused(run: Table) -> None:
    """The softmax is called a flip probability, and would be compared with itself."""
    bare = brittle.score(classifier(), points(8), FORWARD[:1])
    for table, column, message in (
        (run, None, "softmax does not say what noise does to a prediction"),
        (run, "logit_margin", "logit_margin does not say"),
        (bare, None, "holds no flip probability"),
    ):
        with pytest.raises(DataError, match=message) as caught:
            Detector.fit(table, limit=0.9, column=column)
        assert caught.value.code == "no_such_score"
