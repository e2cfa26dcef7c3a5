"""Which points are brittle: by margins and by noise, and what one threshold makes of both."""

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
    """A run of a linear classifier with scores of one pass alone."""
    return brittle.score(classifier(), points(POINTS), FORWARD)


def logit_margins(run: Table) -> np.ndarray:
    return run["logit_margin"].value.to_numpy()


def states(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of `p_robust` of which a third lies below 0.9, a third above it, and a third reaches over it."""
    kind = np.random.default_rng(seed).integers(3, size=count)
    return np.choose(kind, [0.3, 0.92, 0.85]), np.choose(kind, [0.8, 0.99, 0.95])


@pytest.mark.parametrize(
    ("noise", "more"), [(COUNTED, "draws=100000"), (FIXED, "--limit 0.9"), (COUNTED | {"limit": 0.8}, "--limit 0.9")]
)
def test_against_undecided_points_more_is_drawn_for_the_limit(noise: dict[str, Any], more: str) -> None:
    assert more in Criterion(None, 0.9, "monte_carlo", noise).remedy


def test_margins_and_noise_that_say_the_same_give_one_detector(run: Table) -> None:
    """A prediction that is kept surely where the margin is larger than epsilon, and never elsewhere."""
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
    found = Detector.fit(with_kept(run, low, high), limit=0.9)
    rest = slice(7, None)
    breaks, holds = int((high[rest] < 0.9).sum()), int((low[rest] > 0.9).sum())
    counts = found.counts
    assert (counts.brittle, counts.robust, counts.without_number) == (breaks, holds, 7)
    assert counts.undecided == POINTS - 7 - breaks - holds
    flags = found.flag(logit_margins(run))[rest]
    undecided = (high[rest] > 0.9) & (low[rest] < 0.9)
    false = found.false_positives
    assert (false.flagged, false.points) == (int(flags[low[rest] > 0.9].sum()), holds)
    assert (false.undecided, false.undecided_flagged) == (int(undecided.sum()), int(flags[undecided].sum()))
    assert found.true_positives.undecided == counts.undecided // 2
    text = str(found)
    assert f"{holds} robust, {counts.undecided} undecided (left out: 7 without number)" in text
    assert f"{counts.undecided} of {counts.used} points are undecided; draw more copies of these" in text
    assert "probability below 0.9, as monte_carlo(draws=10000, limit" in text
    assert "verdict on the threshold: without the undecided points it agrees" in text
    assert found.criterion.size == "limit 0.9 under sigma 0.1"


def test_undecided_points_choose_nothing(run: Table) -> None:
    """Without them the threshold and the shares of the decided points are the same."""
    low, high = states(POINTS)
    undecided = (low < 0.9) & (high > 0.9)
    whole = Detector.fit(with_kept(run, low, high), limit=0.9)
    low[undecided] = high[undecided] = math.nan
    without = Detector.fit(with_kept(run, low, high), limit=0.9)
    assert whole.threshold == without.threshold
    for name in ("true_positives", "false_positives"):
        ours, theirs = getattr(whole, name), getattr(without, name)
        assert ours.without_undecided == theirs
        assert ours.low < theirs.low < theirs.high < ours.high
    assert whole.verdict.auroc == without.verdict.auroc


def test_the_column_is_the_one_drawn_for_the_limit_or_the_one_named(run: Table) -> None:
    low, high = states(POINTS)
    fixed = {"draws": 1000, "sigma": 0.2}
    both = with_kept(with_kept(run, np.roll(low, 1), np.roll(high, 1), fixed), low, high)

    def noise(**options: Any) -> object:
        return Detector.fit(both, **options).criterion.parameters

    assert noise(limit=0.9) == COUNTED
    assert noise(limit=0.9, column="monte_carlo(draws=1000, sigma=0.2)") == fixed
    assert noise(limit=0.85) == fixed  # draws enough and no limit speak for a run


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        ([0.99] * POINTS, None, "0 points are brittle, 400 robust and 0 undecided at limit 0.9"),
        ([0.5] * POINTS, None, "400 points are brittle, 0 robust"),
        ([0.99] * 300 + [0.8] * 100, [0.99] * 300 + [0.95] * 100, "100 undecided .*draws=100000"),
        ([0.5] * 30 + [0.99] * 370, None, "needs 38 brittle points.*found 30"),
    ],
)
def test_a_run_that_cannot_calibrate_is_refused(run: Table, low: list[float], high: Any, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
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
def test_what_cannot_be_asked_is_refused(noise_table: Table, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Detector.fit(noise_table, **options)


def test_what_says_nothing_of_noise_is_refused(run: Table) -> None:
    """The softmax is called a flip probability, and would be compared with itself."""
    bare = brittle.score(classifier(), points(8), FORWARD[:1])
    for table, column, said in (
        (run, None, "softmax does not say what noise does to a prediction"),
        (run, "logit_margin", "logit_margin does not say"),
        (bare, None, "holds no flip probability"),
    ):
        with pytest.raises(DataError, match=said) as caught:
            Detector.fit(table, limit=0.9, column=column)
        assert caught.value.code == "no_such_score"
