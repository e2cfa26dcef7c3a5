"""The threshold is the lowest that keeps the rate, and its rates are counted."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.calibrated import classifier, points, with_margins
from helpers.tables import first_points, with_scores, without_score
from scipy.stats import beta, betabinom

from brittle.errors import DataError, ParameterError, UnknownNameError
from brittle.extensions.detector.calibration import STEADY, choose_threshold, is_flagged, points_needed, steady_rate
from brittle.extensions.detector.detector import Detector
from brittle.scores.one_pass import feature_margin
from brittle.store.schemas import SCORES as SCHEMA
from brittle.store.table import Table


@pytest.mark.parametrize(("count", "tpr"), [(20, 0.95), (57, 0.9), (10, 0.5)])
def test_true_positive_rate_over_draws_is_that_of_theory(count: int, tpr: float) -> None:
    """The rate of one draw is Beta(k, n + 1 - k); its mean over 4,000 draws lies within 5 standard errors of its own.

    False-fail rate below 1e-6; a threshold one rank lower is off by 30 standard errors or more.
    """
    rng, draws = np.random.default_rng(0), 4000
    rank = math.ceil(round(tpr * (count + 1), 9))
    rates = np.array([choose_threshold(rng.random(count), tpr) for _ in range(draws)]).clip(0.0, 1.0)
    law, one_lower = beta(rank, count + 1 - rank), beta(rank - 1, count + 2 - rank)
    assert law.mean() >= tpr - 1e-12
    assert abs(rates.mean() - law.mean()) < 5.0 * law.std() / math.sqrt(draws)
    assert law.mean() - one_lower.mean() > 10.0 * law.std() / math.sqrt(draws)


def test_fresh_points_of_a_fitted_detector(table: Table) -> None:
    """At least 95% of the brittle points among 20,000 fresh points of a linear problem are flagged, up to the spread
    over draws of the calibration: k of n + 1 by the beta-binomial law, false-fail rate 1e-6."""
    detector = Detector.fit(table, epsilon=0.15, tpr=0.95, score="feature_margin")
    subject, fresh = classifier(), points(20_000, seed=9)
    with torch.no_grad():
        logits = subject(fresh)
    margins = feature_margin(logits, subject.head.weight.double() / 0.3, "linf")
    flags = detector.flag(feature_margin(logits, subject.head.weight.double(), "linf"))
    brittle_points, count = (margins <= 0.15).numpy(), detector.counts.calibration
    rank = math.ceil(0.95 * (count + 1))
    assert flags[brittle_points].sum() >= betabinom(int(brittle_points.sum()), rank, count + 1 - rank).ppf(1e-6)
    assert detector.true_positives.low <= flags[brittle_points].mean() <= detector.true_positives.high
    assert detector.false_positives.low <= flags[~brittle_points].mean() <= detector.false_positives.high
    assert not flags.all()


def test_ties_are_flagged_together() -> None:
    scores = np.array([1.0] * 15 + [2.0] * 10)
    threshold = choose_threshold(scores, 0.9)
    assert threshold == np.nextafter(2.0, np.inf)
    assert is_flagged(scores, threshold).all()
    assert not is_flagged(np.array([np.nextafter(threshold, 3.0), threshold]), threshold).any()


@pytest.mark.parametrize(("tpr", "needed"), [(0.95, 19), (0.9, 9), (0.99, 99), (0.5, 1), (0.3, 1)])
def test_the_number_of_points_needed_suffices_and_one_less_fails(tpr: float, needed: int) -> None:
    assert points_needed(tpr) == needed
    choose_threshold(np.arange(float(needed)), tpr)
    with pytest.raises(DataError, match=f"needs {needed} .*found {needed - 1}"):
        choose_threshold(np.arange(needed - 1.0), tpr)


@pytest.mark.parametrize("tpr", [0.5, 0.8, 0.95, 0.99])
def test_a_steady_number_of_points_is_steady(tpr: float) -> None:
    """By the law of the rate, for 200 numbers from there on."""

    def below(times: int) -> np.ndarray:
        counts = np.arange(times * points_needed(tpr), times * points_needed(tpr) + 200)
        ranks = np.array([math.ceil(round(tpr * (count + 1), 9)) for count in counts])
        return beta.cdf(steady_rate(tpr), ranks, counts + 1 - ranks)

    assert (below(STEADY) <= 0.05).all()
    assert (below(STEADY // 2) > 0.05).any()


def test_the_verdict_tells_a_calibration_that_misses(detector: Detector) -> None:
    """The verdict on the score does not cover the threshold."""
    counts = replace(detector.counts, brittle=104, flagged_brittle=44)
    missed = replace(detector, tpr=0.95, counts=counts)
    assert missed.verdict.trusted
    holding = replace(missed, counts=replace(counts, flagged_brittle=49))
    steady = replace(holding, counts=replace(counts, brittle=494, flagged_brittle=235))
    assert (missed.holds, holding.holds) == (False, True)
    assert "misses the rate of 0.95" in str(missed)
    assert "agrees with the rate of 0.95" in str(holding)
    assert ["494 make" in str(rule) for rule in (missed, holding, steady)] == [True, True, False]


def replace_margins(table: Table, margins: Any, status: Any = None, norm: str = "linf") -> Table:
    """Return `table` with `margins` as its only input margins."""
    return with_margins(without_score(table, "input_margin"), margins, status, norm)


def select(table: Table, *names: str) -> Table:
    return with_scores(table, (score for score in table.record.scores if score.score in names))


def test_points_are_counted_by_class_and_by_reason(table: Table) -> None:
    margins = [0.1] * 200 + [0.15] * 50 + [math.nan] * 20 + [0.01] * 30 + [math.inf] * 100
    status = ["ok"] * 250 + ["nonfinite_logits"] * 20 + ["masked"] * 30 + ["not_found"] * 100
    counts = Detector.fit(replace_margins(table, margins, status), epsilon=0.15).counts
    assert (counts.used, counts.brittle, counts.robust) == (350, 250, 100)
    assert (counts.masked, counts.without_number, counts.learned_from) == (30, 20, 0)
    assert (counts.calibration, counts.held_out) == (125, 125)


def test_a_brittle_point_without_a_score_counts_as_flagged(table: Table) -> None:
    """As long as the points with a score suffice for a threshold."""
    frame = table.long()
    brittle_points = sorted(frame[(frame["score"] == "input_margin") & (frame["value"] <= 0.15)]["point"])

    def without_number(points: list[str]) -> Table:
        changed = frame.copy()
        changed.loc[(frame["score"] == "logit_margin") & frame["point"].isin(points), "value"] = math.nan
        return replace(table, scores=pa.Table.from_pandas(changed, schema=SCHEMA, preserve_index=False))

    unscored = brittle_points[:: len(brittle_points) // 10]
    rule = Detector.fit(without_number(unscored), epsilon=0.15)
    assert rule.counts.without_score == len(unscored)
    assert 0 < rule.threshold < math.inf
    with pytest.raises(DataError, match=r"have no score") as caught:
        Detector.fit(without_number(brittle_points), epsilon=0.15)
    assert caught.value.code == "too_few_points"


def test_order_of_the_rows_does_not_matter(table: Table, detector: Detector) -> None:
    order = np.random.default_rng(0).permutation(len(table.scores))
    assert Detector.fit(replace(table, scores=table.scores.take(order)), epsilon=0.15, tpr=0.9, seed=1) == detector
    assert Detector.fit(table, epsilon=0.15, tpr=0.9, seed=2) != detector


def test_points_that_cannot_calibrate_are_refused(table: Table) -> None:
    """With 8 for 8/255, say, no point would be robust, and every score would look poor."""
    largest = float(table["input_margin"].value.max())
    for run, epsilon, message in (
        (first_points(table, 30), 0.15, r"needs 38 brittle points.*found"),
        (table, 8, "400 points are brittle, 0 robust .*choose another epsilon, in the units"),
        (table, largest, "400 points are brittle"),
        (table, 1e-9, "0 points are brittle"),
        (replace_margins(table, [math.inf] * 400), 0.1, "between inf and inf"),
    ):
        with pytest.raises(DataError, match=message) as caught:
            Detector.fit(run, epsilon=epsilon)
        assert caught.value.code == "too_few_points"
    assert Detector.fit(table, epsilon=math.nextafter(largest, 0.0)).counts.robust == 1


def test_the_norm_is_that_of_the_run(table: Table) -> None:
    values = np.linspace(0, 1, 400).tolist()
    assert Detector.fit(table, epsilon=0.15).criterion.norm == "linf"
    assert Detector.fit(replace_margins(table, values, norm="l2"), epsilon=0.15).criterion.norm == "l2"
    two_norms = with_margins(table, values, norm="l2")
    with pytest.raises(
        DataError, match=r"one of 2 columns: input_margin\(norm=linf\), input_margin\(norm=l2\)"
    ) as caught:
        Detector.fit(two_norms, epsilon=0.15)
    assert caught.value.code == "no_such_score"
    for option in ({"norm": "l2"}, {"column": "input_margin(norm=l2)"}):
        assert Detector.fit(two_norms, epsilon=0.15, **option).criterion.norm == "l2"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda run: run, {"norm": "l2"}, r"found input_margin, l2; .*input_margin\(norm=linf\)"),
        (lambda run: run, {"column": "logit_margin"}, "logit_margin holds no input_margin in linf or"),
        (lambda run: replace_margins(run, [1.0] * 200 + [3.0] * 200, norm="l0"), {}, "no input_margin in"),
        (lambda run: select(run, "logit_margin"), {}, "found input_margin"),
        (lambda run: select(run, "logit_margin", "input_margin"), {"score": "entropy"}, "holds 0 columns of entropy"),
    ],
)
def test_missing_scores_are_named(table: Table, change: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Detector.fit(change(table), epsilon=0.15, **options)
    assert caught.value.code == "no_such_score"


def test_anything_but_a_run_a_norm_or_a_score_is_refused(table: Table, detector: Detector) -> None:
    for wrong in ("run", Path("run"), None):
        with pytest.raises(ParameterError, match=rf"found {type(wrong).__name__}; .*brittle\.read_table"):
            Detector.fit(wrong, epsilon=0.15)  # pyright: ignore[reportArgumentType] misuse is what is tested
    with pytest.raises(ParameterError, match="numbers"):
        detector.flag(["a"])
    with pytest.raises(ParameterError, match=r"expected a brittle\.Classifier, found Linear"):
        detector.apply(classifier().model, points(8))  # pyright: ignore[reportArgumentType] misuse is what is tested
    for option, hint in (({"norm": "linff"}, "did you mean linf"), ({"score": "logit_margins"}, "mean logit_margin")):
        with pytest.raises(UnknownNameError, match=hint):
            Detector.fit(table, epsilon=0.15, **option)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("tpr", ["high", None, math.nan, 1.0]),
        ("confidence", ["high", None, 1]),
        ("seed", [1.5, None, -1, 2**63]),
        ("column", [3, []]),
        ("pseudo_margin", ["margins.safetensors"]),
        ("epsilon", [None, 0.0, math.inf]),
    ],
)
def test_parameters_outside_their_range_are_refused(table: Table, name: str, values: list[object]) -> None:
    for value in values:
        with pytest.raises(ParameterError, match="found"):
            Detector.fit(table, **({"epsilon": 0.15} | {name: value}))  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers(tmp_path: Path, table: Table) -> None:
    numbers: Any = {"tpr": np.float32(0.5), "confidence": np.float32(0.75), "seed": np.int64(3)}
    rule = Detector.fit(table, 0.15, **numbers)
    assert Detector.load(rule.save(tmp_path / "detector.json")) == rule
    assert rule == Detector.fit(table, 0.15, tpr=0.5, confidence=0.75, seed=3)
