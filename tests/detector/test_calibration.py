"""The threshold: it is the lowest that keeps the rate, and what it achieves is counted."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from helpers.calibrated import classifier, points, with_margins, without
from helpers.tables import with_scores, without_score
from scipy.stats import beta, betabinom, binom

import brittle
from brittle.detector import Detector, MarginCriterion, Rate, points_needed, steady_rate
from brittle.detector.calibration import STEADY, calibrate, flagged, threshold_of
from brittle.detector.criterion import KnownPoints
from brittle.errors import DataError, ModelError, ParameterError, UnknownNameError
from brittle.scores import LogitMargin
from brittle.scores.one_pass import feature_margin
from brittle.store.schemas import SCORES as SCHEMA
from brittle.store.table import Table


@pytest.mark.parametrize(("count", "tpr"), [(20, 0.95), (57, 0.9), (199, 0.95), (10, 0.5)])
def test_true_positive_rate_over_draws_is_that_of_theory(count: int, tpr: float) -> None:
    """The rate of one draw is Beta(k, n + 1 - k); its mean over 4,000 draws lies within 5 standard errors of its own.

    False-fail rate below 1e-6; a threshold one rank lower is off by 30 standard errors or more.
    """
    rng, draws = np.random.default_rng(0), 4000
    rank = math.ceil(round(tpr * (count + 1), 9))
    rates = np.array([threshold_of(rng.random(count), tpr) for _ in range(draws)]).clip(0.0, 1.0)
    law = beta(rank, count + 1 - rank)
    assert law.mean() >= tpr - 1e-12
    assert abs(rates.mean() - law.mean()) < 5.0 * law.std() / math.sqrt(draws)
    one_lower = beta(rank - 1, count + 2 - rank)
    assert law.mean() - one_lower.mean() > 10.0 * law.std() / math.sqrt(draws)


def test_interval_of_the_rate_covers_it() -> None:
    """2,000 draws of 120 brittle points at 90%: expect at most 200 misses; above 262 has probability 5e-6 or less."""
    rng, misses, draws, confidence = np.random.default_rng(1), 0, 2000, 0.9
    for _ in range(draws):
        scores = rng.random(120)
        threshold = threshold_of(scores[:60], 0.9)
        rate = Rate.of(flagged(scores[60:], threshold), confidence)
        misses += not rate.low <= min(threshold, 1.0) <= rate.high
    assert misses <= 262
    assert binom.sf(262, draws, 1 - confidence) < 1e-5
    assert misses > 0


def test_fresh_points_of_a_fitted_detector(table: Table) -> None:
    """Of 20,000 fresh points of a linear problem at least 95% of the brittle ones are flagged, up to what the draw of
    the calibration explains: k of n + 1 by beta-binomial law, false-fail rate 1e-6."""
    found = Detector.fit(table, epsilon=0.15, tpr=0.95, score="feature_margin")
    subject, fresh = classifier(), points(20_000, seed=9)
    with torch.no_grad():
        logits = subject(fresh)
    margins = feature_margin(logits, subject.head.weight.double() / 0.3, "linf")
    flags = found.flag(feature_margin(logits, subject.head.weight.double(), "linf"))
    brittle_points = (margins <= 0.15).numpy()
    count = found.counts.calibration
    rank = math.ceil(0.95 * (count + 1))
    least = betabinom(int(brittle_points.sum()), rank, count + 1 - rank).ppf(1e-6)
    assert flags[brittle_points].sum() >= least
    assert found.true_positives.low <= flags[brittle_points].mean() <= found.true_positives.high
    assert not flags.all()


def test_a_score_is_chosen_on_points_that_serve_for_nothing_else() -> None:
    """Ten scores without any meaning, one of them chosen: the rate keeps its law, Beta(k, n + 1 - k), in the mean.

    Over 150 draws within 5 standard errors, false-fail rate below 1e-6. Chosen on the points of the calibration the
    score would flag too little: those points lie low in it by the choice.
    """
    rng, draws = np.random.default_rng(5), 150
    members = np.arange(200) < 100
    rates = []
    for seed in range(draws):
        scores = {str(name): rng.random(200) for name in range(10)}
        known = KnownPoints(pd.RangeIndex(200), rng.random(200), members, ~members)
        found = calibrate(known, scores, 0.9, 0.9, seed)
        rates.append(min(found.threshold, 1.0))
    counts = found.counts  # pyright: ignore[reportPossiblyUnboundVariable] there are draws
    assert (counts.choice, counts.calibration, counts.held_out) == (40, 40, 40)
    assert (counts.true_positives(0.9).points, counts.false_positives(0.9).points) == (40, 80)
    law = beta(math.ceil(0.9 * 41), 41 - math.ceil(0.9 * 41))
    assert abs(np.mean(rates) - law.mean()) < 5.0 * law.std() / math.sqrt(draws)


def test_the_score_that_tells_best_is_chosen(table: Table) -> None:
    """Of two scores that both rank well and one that is noise, the one with the larger AUROC decides."""
    rng = np.random.default_rng(0)
    members = np.arange(400) < 200
    truth = np.where(members, 0.0, 1.0) + 0.1 * rng.random(400)
    scores = {"noise": rng.random(400), "good": truth + 3.0 * rng.random(400), "best": truth + 0.01 * rng.random(400)}
    known = KnownPoints(pd.RangeIndex(400), truth, members, ~members)
    for seed in range(5):
        assert calibrate(known, scores, 0.9, 0.99, seed).score == "best"
    assert calibrate(known, {"noise": scores["noise"]}, 0.9, 0.99, 0).counts.choice == 0


def test_ties_are_flagged_together() -> None:
    scores = np.array([1.0] * 15 + [2.0] * 10)
    threshold = threshold_of(scores, 0.9)
    assert threshold == np.nextafter(2.0, np.inf)
    assert flagged(scores, threshold).all()
    assert not flagged(np.array([np.nextafter(threshold, 3.0), threshold]), threshold).any()


@pytest.mark.parametrize(("tpr", "needed"), [(0.95, 19), (0.9, 9), (0.8, 4), (0.99, 99), (0.5, 1), (0.3, 1)])
def test_points_needed(tpr: float, needed: int) -> None:
    assert points_needed(tpr) == needed
    threshold_of(np.arange(float(needed)), tpr)
    with pytest.raises(DataError, match=f"needs {needed} .*found {needed - 1}"):
        threshold_of(np.arange(needed - 1.0), tpr)


def test_too_few_brittle_points_are_refused(table: Table) -> None:
    with pytest.raises(DataError, match=r"needs 38 brittle points.*found") as caught:
        Detector.fit(without(table, 30), epsilon=0.15)
    assert caught.value.code == "too_few_points"


def test_an_epsilon_that_does_not_part_the_points_is_refused(table: Table) -> None:
    """Such as 8 for 8/255: no point would be robust, and every score look poor."""
    with pytest.raises(DataError, match="every margin is at most 8") as many:
        Detector.fit(table, epsilon=8)
    with pytest.raises(DataError, match=r"every margin is larger than 1e-09") as few:
        Detector.fit(table, epsilon=1e-9)
    with pytest.raises(DataError, match="between inf and inf"):
        Detector.fit(with_margins(without_margins(table), [math.inf] * 400), epsilon=0.1)
    assert (many.value.code, few.value.code) == ("too_few_points", "too_few_points")
    largest = float(table.long().query("score == 'input_margin'")["value"].max())  # pyright: ignore[reportArgumentType] a cell, a column or a frame
    with pytest.raises(DataError, match="every margin is at most"):
        Detector.fit(table, epsilon=largest)
    assert Detector.fit(table, epsilon=math.nextafter(largest, 0.0)).counts.robust == 1


@pytest.mark.parametrize("tpr", [0.5, 0.8, 0.9, 0.95, 0.99])
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
    assert not missed.holds
    assert missed.verdict.trusted
    assert "misses the rate of 0.95" in str(missed)
    assert "494" in str(missed), "as many make it steady"
    kept = replace(missed, counts=replace(counts, flagged_brittle=49))
    assert kept.holds
    assert "agrees with the rate of 0.95" in str(kept)
    assert "494" in str(kept)
    many = replace(kept, counts=replace(counts, brittle=494, flagged_brittle=235))
    assert "494 make" not in str(many)


def test_the_norm_is_that_of_the_run(table: Table) -> None:
    assert margins_of(Detector.fit(table, epsilon=0.15)).norm == "linf"
    single = with_margins(without_margins(table), np.linspace(0, 1, 400).tolist(), norm="l2")
    assert margins_of(Detector.fit(single, epsilon=0.15)).norm == "l2"
    both = with_margins(table, np.linspace(0, 1, 400).tolist(), norm="l2")
    with pytest.raises(DataError, match=r"2 times: input_margin\(norm=linf\), input_margin\(norm=l2\)") as caught:
        Detector.fit(both, epsilon=0.15)
    assert caught.value.code == "no_such_score"
    assert margins_of(Detector.fit(both, epsilon=0.15, norm="l2")).norm == "l2"
    assert margins_of(Detector.fit(both, epsilon=0.15, margin="input_margin(norm=l2)")).norm == "l2"


def test_a_run_in_l0_alone_has_no_detector(table: Table) -> None:
    counted_only = with_margins(without_margins(table), [1.0] * 200 + [3.0] * 200, norm="l0")
    with pytest.raises(DataError, match="in l0 alone, for which there is no detector; score the points in one of"):
        Detector.fit(counted_only, epsilon=2.0)


@pytest.mark.parametrize(
    ("norm", "hint"), [("linff", "did you mean linf"), ("Linf", "did you mean linf"), (2, "there")]
)
def test_an_unknown_norm_is_a_usage_error_with_a_suggestion(table: Table, norm: str, hint: str) -> None:
    with pytest.raises(UnknownNameError, match=f"no norm is called .*{hint}") as caught:
        Detector.fit(table, epsilon=0.15, norm=norm)
    assert (caught.value.code, caught.value.exit_code) == ("unknown_name", 2)
    assert isinstance(caught.value, ParameterError)


def test_what_is_no_run_no_classifier_and_no_score_is_named(table: Table, detector: Detector) -> None:
    for wrong in ("run", Path("run"), table.long(), None):
        with pytest.raises(ParameterError, match=rf"found {type(wrong).__name__}; .*brittle\.read_table"):
            Detector.fit(wrong, epsilon=0.15)  # pyright: ignore[reportArgumentType] misuse is what is tested
    with pytest.raises(ParameterError, match=r"found str; .*brittle\.read_table"):
        Detector.fit(table, epsilon=0.15, scores="run")  # pyright: ignore[reportArgumentType] misuse is what is tested
    with pytest.raises(ParameterError, match="numbers"):
        detector.flag(["a"])
    with pytest.raises(ParameterError, match=r"expected a brittle\.Classifier, found Linear"):
        detector.apply(classifier().model, points(8))  # pyright: ignore[reportArgumentType] misuse is what is tested
    with pytest.raises(ParameterError, match="did you mean logit_margin"):
        Detector.fit(table, epsilon=0.15, score="logit_margins")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("tpr", ["high", None, [0.9], math.nan, 0.0, 1.0]),
        ("confidence", ["high", None, 1]),
        ("seed", ["first", 1.5, None, -1, 2**63]),
        ("margin", [3, []]),
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


def test_counts(table: Table) -> None:
    margins = [0.1] * 200 + [0.15] * 50 + [math.nan] * 20 + [0.01] * 30 + [math.inf] * 100
    status = ["ok"] * 250 + ["nonfinite_logits"] * 20 + ["masked"] * 30 + ["not_found"] * 100
    run = with_margins(without_margins(table), margins, status)
    found = Detector.fit(run, epsilon=0.15).counts
    assert (found.points, found.brittle, found.robust) == (400, 250, 100)
    assert (found.masked, found.without_number, found.learned_from) == (30, 20, 0)
    assert (found.calibration, found.held_out) == (125, 125)


def margins_of(detector: Detector) -> MarginCriterion:
    assert isinstance(detector.criterion, MarginCriterion)
    return detector.criterion


def without_margins(table: Table) -> Table:
    mask = pa.array([score != "input_margin" for score in table.scores["score"].to_pylist()])
    return replace(without_score(table, "input_margin"), scores=table.scores.filter(mask))


def test_a_brittle_point_without_a_score_counts_as_flagged(table: Table) -> None:
    """As long as those that have one can tell a threshold."""
    frame = table.long()
    brittle_points = sorted(frame[(frame["score"] == "input_margin") & (frame["value"] <= 0.15)]["point"])

    def without_score(points: list[str]) -> Table:
        changed = frame.copy()
        changed.loc[(frame["score"] == "logit_margin") & frame["point"].isin(points), "value"] = math.nan
        return replace(table, scores=pa.Table.from_pandas(changed, schema=SCHEMA, preserve_index=False))

    few = brittle_points[:: len(brittle_points) // 10]
    found = Detector.fit(without_score(few), epsilon=0.15)
    assert found.counts.without_score == len(few)
    assert math.isfinite(found.threshold)
    assert found.threshold > 0
    with pytest.raises(DataError, match=r"have no score") as caught:
        Detector.fit(without_score(brittle_points), epsilon=0.15)
    assert caught.value.code == "too_few_points"
    assert threshold_of(np.array([-math.inf, *range(9)]), 0.9) > 0
    with pytest.raises(DataError, match=r"9 of 9 .*have no score"):
        threshold_of(np.full(9, -math.inf), 0.9)


def test_order_of_the_rows_does_not_matter(table: Table, detector: Detector) -> None:
    order = np.random.default_rng(0).permutation(len(table.scores))
    assert Detector.fit(replace(table, scores=table.scores.take(order)), epsilon=0.15, tpr=0.9, seed=1) == detector
    assert Detector.fit(table, epsilon=0.15, tpr=0.9, seed=2) != detector


def test_missing_and_ambiguous_scores(table: Table) -> None:
    with pytest.raises(DataError, match=r"not hold input_margin with .*l2.* input_margin\(norm=linf\)"):
        Detector.fit(table, epsilon=0.1, norm="l2")
    both = with_margins(with_margins(without_margins(table), [0.1] * 400, norm="l7"), [0.1] * 400, norm="l1")
    with pytest.raises(DataError, match="does not hold input_margin with"):
        Detector.fit(both, epsilon=0.1, norm="linf")
    with pytest.raises(DataError, match="does not hold input_margin; its scores"):
        Detector.fit(without_margins(table), epsilon=0.1)
    with pytest.raises(DataError, match="holds 0 columns of entropy"):
        Detector.fit(only(table, "logit_margin", "input_margin"), epsilon=0.15, score="entropy")
    twice = with_margins(table, [0.1] * 400, parameters={"norm": "linf", "effort": "fast"})
    with pytest.raises(DataError, match="2 times"):
        Detector.fit(twice, epsilon=0.1)
    with pytest.raises(ParameterError, match="reads a score"):
        Detector.fit(table, epsilon=0.1, score="moments")


def only(table: Table, *names: str) -> Table:
    return with_scores(table, (one for one in table.record.scores if one.score in names))


def test_the_score_may_stand_in_another_run(table: Table, detector: Detector) -> None:
    margins = only(table, "input_margin")
    assert Detector.fit(margins, epsilon=0.15, tpr=0.9, seed=1, scores=only(table, "logit_margin")) == detector
    other = brittle.score(classifier(seed=5), points(400), [LogitMargin()])
    with pytest.raises(ModelError, match="state_sha256"):
        Detector.fit(margins, epsilon=0.15, scores=other)


def test_scores_of_other_points_are_refused(table: Table) -> None:
    """An id alone is no more than a row number; the data must be the same, and hold every point with a margin."""
    margins = only(table, "input_margin")
    named = brittle.data.array_points(points(400), None, ids=[f"b{row}" for row in range(400)], bounds=(0, 1))
    for data in (points(400, seed=8), named):
        with pytest.raises(DataError, match=r"is of other data") as caught:
            Detector.fit(margins, epsilon=0.15, scores=brittle.score(classifier(), data, [LogitMargin()]))
        assert caught.value.code == "runs_differ"
    with pytest.raises(
        DataError, match=r"100 of 400 points that the detector is calibrated on are not in the run"
    ) as caught:
        Detector.fit(margins, epsilon=0.15, scores=without(only(table, "logit_margin"), 300))
    assert caught.value.code == "runs_differ"
    unknown = replace(table, record=replace(table.record, data=replace(table.record.data, sha256=None)))
    with pytest.raises(DataError, match="other data"):
        Detector.fit(unknown, epsilon=0.15, scores=unknown)


def test_margins_beyond_the_bounds_are_not_held_to_them(table: Table) -> None:
    """Where the attacks may leave the bounds, epsilon may be larger than they are wide."""
    parameters = {"norm": "linf", "bounded": False}
    margins = [0.1] * 300 + [9.0] * 100
    run = with_margins(without_margins(table), margins, parameters=parameters)
    assert margins_of(Detector.fit(run, epsilon=3.0)).epsilon == 3.0
    with pytest.raises(ParameterError, match="found epsilon 3"):
        Detector.fit(with_margins(without_margins(table), margins), epsilon=3.0)
