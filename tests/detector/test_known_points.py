"""Which points are brittle: by margins and by noise, and what one threshold makes of both."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from helpers.calibrated import COUNTED, FORWARD, classifier, points, with_kept, with_margins
from scipy.stats import betabinom, norm

import brittle
from brittle.detector import Detector, NoiseCriterion
from brittle.errors import DataError
from brittle.scores.one_pass import feature_margin
from brittle.store.table import Table

POINTS = 400


@pytest.fixture(scope="module")
def run() -> Table:
    """A run of a linear classifier with scores of one pass alone."""
    return brittle.score(classifier(), points(POINTS), FORWARD)


def logit_margins(run: Table) -> np.ndarray:
    return run["logit_margin"].value.to_numpy()


@pytest.mark.parametrize("seed", [0, 1])
def test_margins_and_noise_that_say_the_same_give_one_detector(run: Table, seed: int) -> None:
    """A prediction that is kept surely where the margin is larger than epsilon, and never elsewhere."""
    margins = np.random.default_rng(seed).permutation(np.linspace(0.0, 1.0, POINTS)) + 0.1 * logit_margins(run)
    epsilon = float(np.median(margins))
    worst = Detector.fit(with_margins(run, margins.tolist(), parameters={"norm": "linf", "bounded": False}), epsilon)
    average = Detector.fit(with_kept(run, (margins > epsilon) * 1.0), limit=0.9, score="logit_margin")
    assert average.threshold == worst.threshold
    assert (average.true_positives, average.false_positives) == (worst.true_positives, worst.false_positives)
    assert average.counts == worst.counts
    assert (average.verdict.auroc, average.verdict.auroc_low) == (worst.verdict.auroc, worst.verdict.auroc_low)
    assert average.criterion == NoiseCriterion(0.9, "monte_carlo", COUNTED)
    assert np.array_equal(average.flag(logit_margins(run)), worst.flag(logit_margins(run)))


def test_fresh_points_of_a_problem_with_known_answers(run: Table) -> None:
    """A point at distance `d` from a linear boundary keeps its prediction with probability `Phi(d / sigma)`.

    The score is the distance in another norm. Of 20,000 fresh points that break at least 90% are flagged, up to what
    the draw of the calibration explains: k of n + 1 by the beta-binomial law, false-fail rate 1e-6. Both rates lie in
    their intervals, false-fail rate 0.02.
    """
    subject, sigma = classifier(), 0.1
    weight = subject.head.weight.double() / 0.3

    def kept(inputs: torch.Tensor) -> np.ndarray:
        with torch.no_grad():
            distances = feature_margin(subject(inputs), weight, "l2").numpy()
        return norm.cdf(distances / sigma)

    found = Detector.fit(with_kept(run, kept(points(POINTS))), limit=0.9, tpr=0.9, score="feature_margin")
    fresh = points(20_000, seed=9)
    with torch.no_grad():
        flags = found.flag(feature_margin(subject(fresh), weight * 0.3, "linf"))
    breaks = kept(fresh) < 0.9
    count = found.counts.calibration
    rank = math.ceil(0.9 * (count + 1))
    assert flags[breaks].sum() >= betabinom(int(breaks.sum()), rank, count + 1 - rank).ppf(1e-6)
    assert found.parameters == {"norm": "linf"}
    assert found.true_positives.low <= flags[breaks].mean() <= found.true_positives.high
    assert found.false_positives.low <= flags[~breaks].mean() <= found.false_positives.high


def states(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of `p_robust` of which a third lies below 0.9, a third above it, and a third reaches over it."""
    kind = np.random.default_rng(seed).integers(3, size=count)
    return np.choose(kind, [0.3, 0.92, 0.85]), np.choose(kind, [0.8, 0.99, 0.95])


def test_points_are_counted_by_their_intervals(run: Table) -> None:
    low, high = states(POINTS)
    low[:7] = high[:7] = math.nan
    found = Detector.fit(with_kept(run, low, high), limit=0.9, score="logit_margin")
    rest = slice(7, None)
    breaks, holds = int((high[rest] < 0.9).sum()), int((low[rest] > 0.9).sum())
    counts = found.counts
    assert (counts.points, counts.brittle, counts.robust, counts.without_number) == (POINTS, breaks, holds, 7)
    assert counts.undecided == POINTS - 7 - breaks - holds
    flags = found.flag(logit_margins(run))[rest]
    undecided = (high[rest] > 0.9) & (low[rest] < 0.9)
    false = found.false_positives
    assert (false.flagged, false.points) == (int(flags[low[rest] > 0.9].sum()), holds)
    assert (false.undecided, false.undecided_flagged) == (int(undecided.sum()), int(flags[undecided].sum()))
    assert found.true_positives.undecided == counts.undecided // 2


def test_undecided_points_choose_nothing(run: Table) -> None:
    """Without them the threshold and the shares of the decided points are the same."""
    low, high = states(POINTS)
    undecided = (low < 0.9) & (high > 0.9)
    whole = Detector.fit(with_kept(run, low, high), limit=0.9, score="logit_margin")
    without = Detector.fit(
        with_kept(run, np.where(undecided, math.nan, low), np.where(undecided, math.nan, high)),
        limit=0.9, score="logit_margin",
    )  # fmt: skip
    assert whole.threshold == without.threshold
    for ours, theirs in (
        (whole.true_positives, without.true_positives),
        (whole.false_positives, without.false_positives),
    ):
        assert ours.without_undecided == theirs
        assert ours.low < theirs.low < theirs.high < ours.high
    assert whole.verdict.auroc == without.verdict.auroc


def test_the_other_column_is_the_one_drawn_for_the_limit(run: Table) -> None:
    """First the one that was drawn for the limit, else the one that speaks for the run, or the one that is named."""
    low, high = states(POINTS)
    fixed = {"draws": 1000, "sigma": 0.2}
    both = with_kept(with_kept(run, np.roll(low, 1), np.roll(high, 1), fixed), low, high)

    def noise(**options: object) -> object:
        criterion = Detector.fit(both, score="logit_margin", **options).criterion  # type: ignore[arg-type]
        assert isinstance(criterion, NoiseCriterion)
        return criterion.noise

    assert noise(limit=0.9) == COUNTED
    assert noise(limit=0.9, column="monte_carlo(draws=1000, sigma=0.2)") == fixed
    assert noise(limit=0.85) == fixed  # draws enough and no limit speak for a run


def test_what_says_nothing_of_noise_is_refused(run: Table) -> None:
    """The softmax is called a flip probability, and would be compared with itself."""
    with pytest.raises(DataError, match="softmax does not say what noise does to a prediction") as caught:
        Detector.fit(run, limit=0.9)
    assert caught.value.code == "no_such_score"
    with pytest.raises(DataError, match="logit_margin does not say"):
        Detector.fit(run, limit=0.9, column="logit_margin")


def test_a_run_of_one_kind_is_refused(run: Table) -> None:
    all_hold, all_break = with_kept(run, [0.99] * POINTS), with_kept(run, [0.5] * POINTS)
    with pytest.raises(DataError, match=r"0 break, 400 hold and 0 are undecided") as none:
        Detector.fit(all_hold, limit=0.9)
    with pytest.raises(DataError, match=r"400 break, 0 hold") as all_of_them:
        Detector.fit(all_break, limit=0.9)
    assert (none.value.code, all_of_them.value.code) == ("too_few_points", "too_few_points")
    open_ = with_kept(run, [0.99] * 300 + [0.8] * 100, [0.99] * 300 + [0.95] * 100)
    with pytest.raises(DataError, match=r"100 are undecided, .*--until decided --limit 0\.9 --most-draws 100000"):
        Detector.fit(open_, limit=0.9)
    few = with_kept(run, [0.5] * 30 + [0.99] * 370)
    with pytest.raises(DataError, match=r"needs 38 brittle points.*found 30"):
        Detector.fit(few, limit=0.9, score="logit_margin")


def test_the_order_of_the_rows_does_not_matter(run: Table) -> None:
    table = with_kept(run, *states(POINTS))
    order = np.random.default_rng(0).permutation(len(table.scores))
    assert Detector.fit(replace(table, scores=table.scores.take(order)), limit=0.9) == Detector.fit(table, limit=0.9)


def test_a_missing_score_is_a_flag(run: Table) -> None:
    """A point without a score is flagged, so it counts as flagged on whatever side it lies."""
    table = with_kept(run, *states(POINTS))
    gone = table.points["point"].to_pylist()[::10]
    frame: pd.DataFrame = table.long()
    frame.loc[(frame["score"] == "logit_margin") & frame["point"].isin(gone), "value"] = math.nan
    broken = replace(table, scores=pa.Table.from_pandas(frame, schema=table.scores.schema, preserve_index=False))
    assert Detector.fit(broken, limit=0.9, score="logit_margin").counts.without_score == len(gone)
