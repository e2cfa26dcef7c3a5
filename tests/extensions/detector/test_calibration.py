"""The threshold: it is the lowest that keeps the rate, and what it achieves is counted."""

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
from brittle.extensions.detector.calibration import STEADY, flagged, points_needed, steady_rate, threshold_of
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
    rates = np.array([threshold_of(rng.random(count), tpr) for _ in range(draws)]).clip(0.0, 1.0)
    law, one_lower = beta(rank, count + 1 - rank), beta(rank - 1, count + 2 - rank)
    assert law.mean() >= tpr - 1e-12
    assert abs(rates.mean() - law.mean()) < 5.0 * law.std() / math.sqrt(draws)
    assert law.mean() - one_lower.mean() > 10.0 * law.std() / math.sqrt(draws)


def test_fresh_points_of_a_fitted_detector(table: Table) -> None:
    """Of 20,000 fresh points of a linear problem at least 95% of the brittle ones are flagged, up to what the draw of
    the calibration explains: k of n + 1 by beta-binomial law, false-fail rate 1e-6."""
    found = Detector.fit(table, epsilon=0.15, tpr=0.95, score="feature_margin")
    subject, fresh = classifier(), points(20_000, seed=9)
    with torch.no_grad():
        logits = subject(fresh)
    margins = feature_margin(logits, subject.head.weight.double() / 0.3, "linf")
    flags = found.flag(feature_margin(logits, subject.head.weight.double(), "linf"))
    brittle_points, count = (margins <= 0.15).numpy(), found.counts.calibration
    rank = math.ceil(0.95 * (count + 1))
    assert flags[brittle_points].sum() >= betabinom(int(brittle_points.sum()), rank, count + 1 - rank).ppf(1e-6)
    assert found.true_positives.low <= flags[brittle_points].mean() <= found.true_positives.high
    assert found.false_positives.low <= flags[~brittle_points].mean() <= found.false_positives.high
    assert not flags.all()


def test_ties_are_flagged_together() -> None:
    scores = np.array([1.0] * 15 + [2.0] * 10)
    threshold = threshold_of(scores, 0.9)
    assert threshold == np.nextafter(2.0, np.inf)
    assert flagged(scores, threshold).all()
    assert not flagged(np.array([np.nextafter(threshold, 3.0), threshold]), threshold).any()


@pytest.mark.parametrize(("tpr", "needed"), [(0.95, 19), (0.9, 9), (0.99, 99), (0.5, 1), (0.3, 1)])
def test_points_needed(tpr: float, needed: int) -> None:
    assert points_needed(tpr) == needed
    threshold_of(np.arange(float(needed)), tpr)
    with pytest.raises(DataError, match=f"needs {needed} .*found {needed - 1}"):
        threshold_of(np.arange(needed - 1.0), tpr)


@pytest.mark.parametrize("tpr", [0.5, 0.8, 0.95, 0.99])
def test_a_steady_number_of_points_is_steady(tpr: float) -> None:
    """By the law of the rate, for every number from there on."""

    def below(times: int) -> np.ndarray:
        counts = np.arange(times * points_needed(tpr), times * points_needed(tpr) + 200)
        ranks = np.array([math.ceil(round(tpr * (count + 1), 9)) for count in counts])
        return beta.cdf(steady_rate(tpr), ranks, counts + 1 - ranks)

    assert (below(STEADY) <= 0.05).all()
    assert (below(STEADY // 2) > 0.05).any()


def test_a_calibration_that_misses_says_so(detector: Detector) -> None:
    """The verdict on the score does not speak for the threshold."""
    counts = replace(detector.counts, brittle=104, flagged_brittle=44)
    missed = replace(detector, tpr=0.95, counts=counts)
    assert missed.verdict.trusted
    kept = replace(missed, counts=replace(counts, flagged_brittle=49))
    many = replace(kept, counts=replace(counts, brittle=494, flagged_brittle=235))
    assert (missed.holds, kept.holds) == (False, True)
    assert "misses the rate of 0.95" in str(missed)
    assert "agrees with the rate of 0.95" in str(kept)
    assert ["494 make" in str(one) for one in (missed, kept, many)] == [True, True, False]


def margins_alone(table: Table, margins: Any, status: Any = None, norm: str = "linf") -> Table:
    """`table` with other input margins in place of its own."""
    return with_margins(without_score(table, "input_margin"), margins, status, norm)


def only(table: Table, *names: str) -> Table:
    return with_scores(table, (one for one in table.record.scores if one.score in names))


def test_counts(table: Table) -> None:
    margins = [0.1] * 200 + [0.15] * 50 + [math.nan] * 20 + [0.01] * 30 + [math.inf] * 100
    status = ["ok"] * 250 + ["nonfinite_logits"] * 20 + ["masked"] * 30 + ["not_found"] * 100
    found = Detector.fit(margins_alone(table, margins, status), epsilon=0.15).counts
    assert (found.used, found.brittle, found.robust) == (350, 250, 100)
    assert (found.masked, found.without_number, found.learned_from) == (30, 20, 0)
    assert (found.calibration, found.held_out) == (125, 125)


def test_a_brittle_point_without_a_score_counts_as_flagged(table: Table) -> None:
    """As long as those that have one can tell a threshold."""
    frame = table.long()
    brittle_points = sorted(frame[(frame["score"] == "input_margin") & (frame["value"] <= 0.15)]["point"])

    def without_number(points: list[str]) -> Table:
        changed = frame.copy()
        changed.loc[(frame["score"] == "logit_margin") & frame["point"].isin(points), "value"] = math.nan
        return replace(table, scores=pa.Table.from_pandas(changed, schema=SCHEMA, preserve_index=False))

    few = brittle_points[:: len(brittle_points) // 10]
    found = Detector.fit(without_number(few), epsilon=0.15)
    assert found.counts.without_score == len(few)
    assert 0 < found.threshold < math.inf
    with pytest.raises(DataError, match=r"have no score") as caught:
        Detector.fit(without_number(brittle_points), epsilon=0.15)
    assert caught.value.code == "too_few_points"


def test_order_of_the_rows_does_not_matter(table: Table, detector: Detector) -> None:
    order = np.random.default_rng(0).permutation(len(table.scores))
    assert Detector.fit(replace(table, scores=table.scores.take(order)), epsilon=0.15, tpr=0.9, seed=1) == detector
    assert Detector.fit(table, epsilon=0.15, tpr=0.9, seed=2) != detector


def test_points_that_cannot_calibrate_are_refused(table: Table) -> None:
    """Such as with 8 for 8/255: no point would be robust, and every score look poor."""
    largest = float(table["input_margin"].value.max())
    for run, epsilon, said in (
        (first_points(table, 30), 0.15, r"needs 38 brittle points.*found"),
        (table, 8, "400 points are brittle, 0 robust .*choose another epsilon, in the units"),
        (table, largest, "400 points are brittle"),
        (table, 1e-9, "0 points are brittle"),
        (margins_alone(table, [math.inf] * 400), 0.1, "between inf and inf"),
    ):
        with pytest.raises(DataError, match=said) as caught:
            Detector.fit(run, epsilon=epsilon)
        assert caught.value.code == "too_few_points"
    assert Detector.fit(table, epsilon=math.nextafter(largest, 0.0)).counts.robust == 1


def test_the_norm_is_that_of_the_run(table: Table) -> None:
    values = np.linspace(0, 1, 400).tolist()
    assert Detector.fit(table, epsilon=0.15).criterion.norm == "linf"
    assert Detector.fit(margins_alone(table, values, norm="l2"), epsilon=0.15).criterion.norm == "l2"
    both = with_margins(table, values, norm="l2")
    with pytest.raises(
        DataError, match=r"one of 2 columns: input_margin\(norm=linf\), input_margin\(norm=l2\)"
    ) as caught:
        Detector.fit(both, epsilon=0.15)
    assert caught.value.code == "no_such_score"
    for option in ({"norm": "l2"}, {"column": "input_margin(norm=l2)"}):
        assert Detector.fit(both, epsilon=0.15, **option).criterion.norm == "l2"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (lambda run: run, {"norm": "l2"}, r"found input_margin, l2; .*input_margin\(norm=linf\)"),
        (lambda run: run, {"column": "logit_margin"}, "logit_margin holds no input_margin in linf or"),
        (lambda run: margins_alone(run, [1.0] * 200 + [3.0] * 200, norm="l0"), {}, "no input_margin in"),
        (lambda run: only(run, "logit_margin"), {}, "found input_margin"),
        (lambda run: only(run, "logit_margin", "input_margin"), {"score": "entropy"}, "holds 0 columns of entropy"),
    ],
)
def test_scores_that_are_not_there_are_named(table: Table, change: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        Detector.fit(change(table), epsilon=0.15, **options)
    assert caught.value.code == "no_such_score"


def test_what_is_no_run_no_norm_and_no_score_is_named(table: Table, detector: Detector) -> None:
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
def test_what_a_parameter_cannot_be_is_refused(table: Table, name: str, values: list[object]) -> None:
    for value in values:
        with pytest.raises(ParameterError, match="found"):
            Detector.fit(table, **({"epsilon": 0.15} | {name: value}))  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers(tmp_path: Path, table: Table) -> None:
    numbers: Any = {"tpr": np.float32(0.5), "confidence": np.float32(0.75), "seed": np.int64(3)}
    given = Detector.fit(table, 0.15, **numbers)
    assert Detector.load(given.save(tmp_path / "detector.json")) == given
    assert given == Detector.fit(table, 0.15, tpr=0.5, confidence=0.75, seed=3)
