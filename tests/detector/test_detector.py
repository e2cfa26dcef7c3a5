"""A detector keeps its promise on points it has not seen, fails closed, and belongs to one model."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import math
import operator
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
import torch
from helpers.problems import inputs, linear_network, small_network
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, betabinom, binom
from torch import Tensor, nn

import brittle
from brittle.detector import FLAGS, READINGS, Counts, Detector, Rate, Source, points_needed, steady_rate, write_flags
from brittle.detector.calibration import judge
from brittle.detector.threshold import STEADY, flagged, threshold_of
from brittle.errors import (
    BrittleError,
    DataError,
    DetectorFormatError,
    ModelError,
    ParameterError,
    StorageError,
    UnknownNameError,
)
from brittle.estimate import Status
from brittle.norms import parse_epsilon
from brittle.scores import Entropy, FeatureMargin, LogitMargin, MaxProbability, ProbabilityMargin
from brittle.scores.feature_margin import feature_margin
from brittle.store.table import SCORES as SCHEMA
from brittle.store.table import Table, parameters_json

SIMPLE = [name for name in READINGS if name != "pseudo_margin"]
FORWARD = [LogitMargin(), MaxProbability(), ProbabilityMargin(), Entropy(), FeatureMargin("linf")]


def with_margins(table: Table, margins, status=None, norm: str = "linf", parameters=None) -> Table:
    """`table` with input margins, as a run with attacks would have recorded them."""
    status = status or ["not_found" if math.isinf(margin) else "ok" for margin in margins]
    parameters = parameters or {"norm": norm}
    rows = {
        "point": table.points["point"],
        "score": ["input_margin"] * len(margins),
        "parameters": [parameters_json(parameters)] * len(margins),
        "value": pa.array(margins, pa.float64(), from_pandas=True),
        "low": [0.0] * len(margins),
        "high": pa.array(margins, pa.float64(), from_pandas=True),
        "status": status,
        "detail": [None] * len(margins),
        "passes": [100] * len(margins),
        **dict.fromkeys(("evidence", "counted_low", "counted_high"), [None] * len(margins)),
    }
    entry = {"score": "input_margin", "parameters": parameters, "label": f"input_margin(norm={norm})"}
    entries = [*table.provenance["scores"], entry]
    return replace(
        table,
        scores=pa.concat_tables([table.scores, pa.table(rows, schema=SCHEMA)]),
        provenance=table.provenance | {"scores": entries},
    )


def classifier(seed: int = 0) -> brittle.Classifier:
    return brittle.Classifier(linear_network(3, 6, seed, torch.float32), mean=0.4, std=0.3)


def points(count: int, seed: int = 0) -> Tensor:
    return inputs(count, (6,), seed)


@pytest.fixture(scope="module")
def table() -> Table:
    """A run of a linear classifier with the exact margins."""
    subject = classifier()
    run = brittle.score(subject, points(400), FORWARD)
    with torch.no_grad():
        logits = subject(points(400))
    margins = feature_margin(logits, subject.head.weight.double() / 0.3, "linf")
    return with_margins(run, margins.tolist())


@pytest.fixture(scope="module")
def detector(table: Table) -> Detector:
    return Detector.fit(table, epsilon=0.15, tpr=0.9, seed=1)


def without(table: Table, rows: int) -> Table:
    """`table` with the first `rows` points only."""
    kept = set(table.points["point"].to_pylist()[:rows])
    mask = pa.array([point in kept for point in table.scores["point"].to_pylist()])
    return replace(table, points=table.points[:rows], scores=table.scores.filter(mask))


# The promise.


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
    assert caught.value.code == "too_few_calibration_points"


def test_an_epsilon_that_does_not_part_the_points_is_refused(table: Table) -> None:
    """Such as 8 for 8/255: no point would be robust, and every score look poor."""
    with pytest.raises(DataError, match="every margin is at most 8, so there is no robust point to tell apart") as many:
        Detector.fit(table, epsilon=8)
    with pytest.raises(DataError, match=r"every margin is larger than 1e-09, .* the smallest is") as few:
        Detector.fit(table, epsilon=1e-9)
    with pytest.raises(DataError, match="no other prediction was found at all"):
        Detector.fit(with_margins(without_margins(table), [math.inf] * 400), epsilon=0.1)
    assert (many.value.code, few.value.code) == ("no_robust_points", "no_brittle_points")
    largest = float(table.long().query("score == 'input_margin'")["value"].max())
    with pytest.raises(DataError, match="no robust point"):
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


def counted(counts: Counts, brittle_points: int) -> Counts:
    """The counts with so many brittle points, an even number."""
    half = brittle_points // 2
    whole = counts.points - counts.brittle + brittle_points
    return replace(counts, points=whole, brittle=brittle_points, calibration=half, held_out=half)


def test_a_calibration_that_misses_says_so(detector: Detector) -> None:
    """The verdict on the score does not speak for the threshold."""
    rate = Rate.of(np.arange(52) < 44, 0.99)
    counts = counted(detector.counts, 104)
    missed = replace(detector, tpr=0.95, true_positives=rate, counts=counts)
    assert not missed.holds
    text = str(missed)
    assert "flags of held-out brittle points: 84.6% [67.8%, 94.8%], 44 of 52 points" in text
    assert "verdict on the score: trusted" in text
    assert "verdict on the threshold: misses the rate of 0.95 asked for" in text
    assert f"ends at {math.floor(1e4 * rate.high) / 1e4}" in text
    assert "(here 104; 494 make the rate steady, at least 0.925 in 95% of calibrations)" in text
    assert "another seed" in text
    kept = replace(missed, true_positives=Rate.of(np.arange(52) < 49, 0.99))
    assert kept.holds
    assert "agrees with the rate of 0.95" in str(kept)
    assert "with 104 brittle points the rate of one varies, 494 make" in str(kept)
    many = replace(kept, true_positives=Rate.of(np.arange(247) < 235, 0.99), counts=counted(counts, 494))
    assert str(many).count("varies") == 0


def test_the_norm_is_that_of_the_run(table: Table) -> None:
    assert Detector.fit(table, epsilon=0.15).norm == "linf"
    single = with_margins(without_margins(table), np.linspace(0, 1, 400).tolist(), norm="l2")
    assert Detector.fit(single, epsilon=0.15).norm == "l2"
    both = with_margins(table, np.linspace(0, 1, 400).tolist(), norm="l2")
    with pytest.raises(DataError, match="input_margin in linf and l2; say which is meant with --norm") as caught:
        Detector.fit(both, epsilon=0.15)
    assert caught.value.code == "several_norms"
    assert Detector.fit(both, epsilon=0.15, norm="l2").norm == "l2"
    assert Detector.fit(both, epsilon=0.15, margin="input_margin(norm=l2)").norm == "l2"


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
            Detector.fit(wrong, epsilon=0.15)
    with pytest.raises(ParameterError, match="scores: expected"):
        Detector.fit(table, epsilon=0.15, scores="run")
    with pytest.raises(ParameterError, match="numbers"):
        detector.flag(["a"])
    with pytest.raises(ParameterError, match=r"expected a brittle\.Classifier, found Linear"):
        detector.apply(classifier().model, points(8))
    with pytest.raises(ParameterError, match="did you mean logit_margin"):
        Detector.fit(table, epsilon=0.15, score="logit_margins")


# What is counted.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tpr", "high"),
        ("tpr", None),
        ("tpr", [0.9]),
        ("tpr", math.nan),
        ("confidence", "high"),
        ("confidence", None),
        ("confidence", 1),
        ("seed", "first"),
        ("seed", 1.5),
        ("seed", None),
        ("seed", -1),
        ("seed", 2**63),
        ("margin", 3),
        ("margin", []),
        ("pseudo_margin", "margins.safetensors"),
        ("epsilon", None),
    ],
)
def test_what_a_parameter_cannot_be_is_named(table: Table, name: str, value: object) -> None:
    with pytest.raises(ParameterError, match="found") as caught:
        Detector.fit(table, **({"epsilon": 0.15} | {name: value}))  # type: ignore[arg-type]
    assert caught.value.code == name


def test_numbers_of_numpy_are_numbers(tmp_path: Path, table: Table) -> None:
    given = Detector.fit(table, 0.15, tpr=np.float32(0.5), confidence=np.float32(0.75), seed=np.int64(3))
    assert Detector.load(given.save(tmp_path / "detector.json")) == given
    assert given == Detector.fit(table, 0.15, tpr=0.5, confidence=0.75, seed=3)


def test_counts(table: Table) -> None:
    margins = [0.1] * 200 + [0.15] * 50 + [math.nan] * 20 + [0.01] * 30 + [math.inf] * 100
    status = ["ok"] * 250 + ["nonfinite_logits"] * 20 + ["masked"] * 30 + ["not_found"] * 100
    run = with_margins(without_margins(table), margins, status)
    found = Detector.fit(run, epsilon=0.15).counts
    assert (found.points, found.brittle, found.robust) == (400, 250, 100)
    assert (found.masked, found.without_margin, found.learned_from) == (30, 20, 0)
    assert (found.calibration, found.held_out) == (125, 125)


def without_margins(table: Table) -> Table:
    entries = [entry for entry in table.provenance["scores"] if entry["score"] != "input_margin"]
    mask = pa.array([score != "input_margin" for score in table.scores["score"].to_pylist()])
    return replace(table, scores=table.scores.filter(mask), provenance=table.provenance | {"scores": entries})


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
    assert caught.value.code == "too_many_without_score"
    assert threshold_of(np.array([-math.inf, *range(9)]), 0.9) > 0
    with pytest.raises(DataError, match=r"9 of 9 .*have no score"):
        threshold_of(np.full(9, -math.inf), 0.9)


def test_order_of_the_rows_does_not_matter(table: Table, detector: Detector) -> None:
    order = np.random.default_rng(0).permutation(len(table.scores))
    assert Detector.fit(replace(table, scores=table.scores.take(order)), epsilon=0.15, tpr=0.9, seed=1) == detector
    assert Detector.fit(table, epsilon=0.15, tpr=0.9, seed=2) != detector


def test_missing_and_ambiguous_scores(table: Table) -> None:
    with pytest.raises(DataError, match=r"not hold input_margin in l2, only in linf; use --norm linf"):
        Detector.fit(table, epsilon=0.1, norm="l2")
    both = with_margins(with_margins(without_margins(table), [0.1] * 400, norm="l7"), [0.1] * 400, norm="l1")
    with pytest.raises(DataError, match="does not hold input_margin with"):
        Detector.fit(both, epsilon=0.1, norm="linf")
    with pytest.raises(DataError, match="does not hold input_margin; its scores"):
        Detector.fit(without_margins(table), epsilon=0.1)
    with pytest.raises(DataError, match="does not hold entropy"):
        Detector.fit(only(table, "logit_margin", "input_margin"), epsilon=0.15, score="entropy")
    twice = with_margins(table, [0.1] * 400)
    twice.provenance["scores"][-1]["label"] = "other"
    with pytest.raises(DataError, match="2 times"):
        Detector.fit(twice, epsilon=0.1)
    with pytest.raises(ParameterError, match="reads one of"):
        Detector.fit(table, epsilon=0.1, score="moments")
    for wrong in ({"tpr": 1.0}, {"tpr": 0.0}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"confidence": 1.0}):
        with pytest.raises(ParameterError):
            Detector.fit(table, **({"epsilon": 0.1} | wrong))


def only(table: Table, *names: str) -> Table:
    entries = [entry for entry in table.provenance["scores"] if entry["score"] in names]
    return replace(table, provenance=table.provenance | {"scores": entries})


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
        assert caught.value.code == "other_points"
    with pytest.raises(DataError, match=r"100 of 400 points with a margin are not in the run") as caught:
        Detector.fit(margins, epsilon=0.15, scores=without(only(table, "logit_margin"), 300))
    assert caught.value.code == "other_points"
    unknown = replace(table, provenance=table.provenance | {"data": table.provenance["data"] | {"sha256": None}})
    with pytest.raises(DataError, match="other data"):
        Detector.fit(unknown, epsilon=0.15, scores=unknown)


def test_sources() -> None:
    one = Source("a", "test", "data/x")
    assert one.same(Source("a", "test", "elsewhere"))
    assert not one.same(Source("a", "train", "data/x"))
    assert not one.same(Source("b", "test", "data/x"))
    assert one.may_share(Source("b", "test", "data/x")), "the digest of a folder changes with the limit"
    assert not one.may_share(Source("b", "train", "data/x"))
    assert not Source(None, None, None).may_share(Source(None, None, None))
    assert Source.of({"sha256": "a", "split": "test", "path": "a\nb"}) == Source("a", "test", None)


def test_verdict() -> None:
    rng = np.random.default_rng(0)
    margins = rng.random(300)
    good, bad = judge(margins, margins, 0.3, 0.99), judge(margins, rng.random(300), 0.3, 0.99)
    assert good.trusted
    assert str(good).startswith("trusted")
    assert good.tau == pytest.approx(1.0)
    assert not bad.trusted
    assert "pseudo-margin" in str(bad)
    one_class = judge(margins, margins, 2.0, 0.99)
    assert (one_class.trusted, one_class.auroc) == (False, None)


@pytest.mark.parametrize(("text", "value"), [("8/255", 8 / 255), ("0.03", 0.03), (0.5, 0.5), ("0.5/2", 0.25), (1, 1.0)])
def test_parse_epsilon(text: float | str, value: float) -> None:
    assert parse_epsilon(text) == value


@pytest.mark.parametrize("text", ["", "8/", "/255", "8/0", "-1", "nan", "inf", "1e999", "0", "8/255/2", "x", math.nan])
def test_parse_epsilon_refuses(text: float | str) -> None:
    with pytest.raises(ParameterError, match="8/255"):
        parse_epsilon(text)


# It fails closed.


def test_flag_fails_closed(detector: Detector) -> None:
    edge = detector.threshold
    safe, below = np.nextafter(edge, math.inf), np.nextafter(edge, -math.inf)
    found = detector.flag([math.nan, None, math.inf, -math.inf, below, edge, safe])
    assert found.tolist() == [True, True, True, True, True, False, False]
    assert detector.flag(torch.tensor([math.nan, 1e9])).tolist() == [True, False]


class Given(nn.Module):
    """Gives its inputs as logits, scaled by a weight of 1 so that there is something to digest."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def lenient(detector: Detector, score: str, network: nn.Module, outputs: str = "logits") -> Detector:
    """A detector of `network` that calls nothing brittle but what it must."""
    known = brittle.detector.Identity(
        brittle.model.loading.load.state_digest(network), (-2.0, 2.0), None, None, outputs
    )
    return below_all(replace(detector, model=known), score)


def below_all(detector: Detector, score: str = "logit_margin") -> Detector:
    """A detector that no file can hold, whose threshold every finite score reaches, to see the other rules alone."""
    changed = copy.copy(detector)
    for name, value in (("score", score), ("threshold", -1e300)):
        object.__setattr__(changed, name, value)
    return changed


class Listed(nn.Module):
    """Gives for an input `k / 8` row `k` of a list of logits, scaled by a weight of 1."""

    def __init__(self, rows: list[list[float]]) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.rows = torch.tensor(rows)

    def forward(self, x: Tensor) -> Tensor:
        return self.rows[(8 * x[:, 0]).round().long()] * self.scale


@pytest.mark.parametrize("score", [name for name in SIMPLE if name != "feature_margin"])
def test_broken_logits_and_ties_are_brittle(detector: Detector, score: str) -> None:
    rows = [[1, 1, 0], [math.nan, 1, 0], [math.inf, 1, 0], [0, 1, -math.inf], [math.inf, math.inf, 0], [3, 1, 0]]
    network = Listed(rows)
    logits, _, brittle_points = lenient(detector, score, network).wrap(network)(torch.arange(6.0)[:, None] / 8)
    assert brittle_points.tolist() == [True] * 5 + [False]
    assert logits.shape == (6, 3)


def test_what_is_no_probability_is_brittle(detector: Detector) -> None:
    network = Given()
    wrapped = lenient(detector, "logit_margin", network, "probs").wrap(network)
    rows = torch.tensor([[0.7, 0.3, 0.0], [1.2, 0.1, 0.1], [-0.1, 0.8, 0.3]])
    assert wrapped(rows)[2].tolist() == [False, True, True]


def test_binary_logit(detector: Detector) -> None:
    network = nn.Linear(4, 1)
    wrapped = lenient(detector, "logit_margin", network, "binary-logit").wrap(network)
    x = torch.randn(5, 4)
    logits, score, _ = wrapped(x)
    assert torch.equal(logits[:, 1], network(x)[:, 0])
    assert torch.equal(score, network(x)[:, 0].double().abs())


# The network with the detector built in.


@pytest.mark.parametrize("score", SIMPLE)
def test_wrapped_network_is_the_rule(table: Table, score: str) -> None:
    """Same numbers as the run, same flags as the rule, and the exported program agrees on all of 1,000 points."""
    found = Detector.fit(table, epsilon=0.15, tpr=0.9, score=score)
    subject = classifier()
    wrapped = found.wrap(subject)
    logits, values, flags = wrapped(points(400))
    frame = table.long()
    run = READINGS[score].oriented(frame[frame["score"] == score]["value"].to_numpy())
    assert np.array_equal(values.detach().numpy(), run)
    assert values.dtype == torch.float64
    with torch.no_grad():
        assert torch.equal(logits, subject(points(400)))
    fresh = points(1000, seed=3)
    exported = torch.export.export(
        wrapped, (points(4),), dynamic_shapes={"inputs": {0: torch.export.Dim("batch")}}, strict=False
    ).module()
    for network in (wrapped, exported):
        values, flags = network(fresh)[1:]
        assert np.array_equal(flags.numpy(), found.flag(values))
    assert torch.equal(exported(fresh)[1], wrapped(fresh)[1])
    assert 0 < int(flags.sum()) < 1000


@pytest.mark.parametrize("score", ["logit_margin", "feature_margin"])
def test_exported_programs_can_be_wrapped(tmp_path: Path, table: Table, score: str) -> None:
    found = Detector.fit(table, epsilon=0.15, tpr=0.9, score=score)
    program = torch.export.export(
        linear_network(3, 6, 0, torch.float32).eval(), (points(4),), dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    torch.export.save(program, tmp_path / "model.pt2")
    loaded = brittle.model.loading.load.load_model(tmp_path / "model.pt2").module
    wrapped = found.wrap(loaded)
    fresh = points(1000, seed=3)
    expected = found.wrap(classifier())(fresh)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(wrapped(fresh), expected, strict=True))
    again = torch.export.export(
        wrapped.eval(), (points(4),), dynamic_shapes={"inputs": {0: torch.export.Dim("batch")}}, strict=False
    )
    torch.export.save(again, tmp_path / "wrapped.pt2")
    exported = torch.export.load(tmp_path / "wrapped.pt2").module()
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(exported(fresh), expected, strict=True))


class TwoHeads(nn.Module):
    """The last linear layer by definition is not the one that gives the logits."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.body, self.head, self.projector = nn.Linear(6, 5), nn.Linear(5, 3), nn.Linear(5, 3)
            self.head.weight.data.mul_(8)

    def forward(self, x: Tensor) -> Tensor:
        features = self.body(x).relu()
        self.projector(features)
        return self.head(features)


def test_features_are_those_of_the_layer_of_the_fit() -> None:
    subject = brittle.Classifier(TwoHeads(), head="head")
    run = brittle.score(subject, points(400), [FeatureMargin("linf")])
    values = run.scores["value"].to_numpy()
    run = with_margins(run, values.tolist())
    found = Detector.fit(run, float(np.median(values)), score="feature_margin")
    assert found.head == "head"
    for network in (subject, subject.model, brittle.Classifier(subject.model)):
        assert np.array_equal(found.wrap(network)(points(400))[1].detach().numpy(), values)
        if isinstance(network, brittle.Classifier):
            assert found.apply(network, points(400))["score"].to_pylist() == values.tolist()
    with pytest.raises(ModelError, match=r"'head'.*names 'projector'"):
        found.wrap(brittle.Classifier(subject.model, head="projector"))


def test_a_layer_that_does_not_give_the_logits_is_refused(table: Table) -> None:
    network = TwoHeads()
    found = Detector.fit(table, epsilon=0.15, tpr=0.9, score="feature_margin")
    wrapped = lenient(found, "feature_margin", network).wrap(network)
    with pytest.raises(ModelError, match="'projector' gives"):
        wrapped(points(4))
    sound = found.wrap(classifier())
    shapes = {"inputs": {0: torch.export.Dim("batch")}}
    with pytest.raises(ModelError, match="run the network once"):
        torch.export.export(sound, (points(4),), dynamic_shapes=shapes, strict=False)
    sound(points(4))
    torch.export.export(sound, (points(4),), dynamic_shapes=shapes, strict=False)


def test_parametrised_last_layer() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        last = nn.Linear(5, 3)
        last.weight.data.mul_(8)
        network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.utils.parametrizations.weight_norm(last))
    subject = brittle.Classifier(network)
    run = brittle.score(subject, points(400), [FeatureMargin("linf")])
    values = run.scores["value"].to_numpy()
    found = Detector.fit(with_margins(run, values.tolist()), float(np.median(values)), score="feature_margin")
    assert np.array_equal(found.wrap(network)(points(400))[1].detach().numpy(), values)


@pytest.mark.parametrize("score", SIMPLE)
def test_one_logit(score: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 1))
    subject = brittle.Classifier(network, outputs="binary-logit")
    run = brittle.score(subject, points(400), FORWARD)
    values = run.wide()[next(one["label"] for one in run.provenance["scores"] if one["score"] == score)].to_numpy()
    values = READINGS[score].oriented(values)
    table = with_margins(run, (values + 2.0).tolist(), parameters={"norm": "linf", "bounded": False})
    found = Detector.fit(table, float(np.median(values)) + 2.0, score=score)
    assert np.array_equal(found.wrap(network)(points(400))[1].detach().numpy(), values)


def test_a_pseudo_margin_that_is_not_read_is_refused(table: Table, detector: Detector) -> None:
    learned = brittle.PseudoMargin.fit(torch.rand(30, 6), torch.rand(30), layers=1, width=4, epochs=1)
    for use in (
        lambda: Detector.fit(table, 0.15, pseudo_margin=learned),
        lambda: detector.wrap(classifier(), pseudo_margin=learned),
        lambda: detector.apply(classifier(), points(8), pseudo_margin=learned),
    ):
        with pytest.raises(ParameterError, match="reads no pseudo-margin"):
            use()


def test_wrapped_convolutional_network_stays_in_evaluation_mode(detector: Detector) -> None:
    network = nn.Sequential(nn.Dropout(), small_network()).train()
    wrapped = lenient(detector, "logit_margin", network).wrap(network)
    assert not network.training
    assert torch.equal(wrapped(inputs(3))[0], wrapped(inputs(3))[0])
    with pytest.raises(ModelError, match="evaluation mode"):
        wrapped.train()


def test_inputs_outside_the_bounds_are_brittle(detector: Detector) -> None:
    """They are none that the detector was calibrated on, as 0..255 where 0..1 was declared; also in the export."""
    network = linear_network(3, 6, 0, torch.float32)
    wrapped = below_all(detector).wrap(network)
    x = points(8)
    exported = torch.export.export(
        wrapped, (x,), dynamic_shapes={"inputs": {0: torch.export.Dim("batch")}}, strict=False
    ).module()
    assert not wrapped(x)[2].any()
    edges = x.clone()
    edges[0, 3], edges[1, 0], edges[2, 5] = 1.001, -0.001, math.nan
    edges[3, 0], edges[4, 0], edges[5, 1], edges[6, 1] = 0.0, 1.0, 1.0 + 5e-7, -5e-7
    for one in (wrapped, exported):
        assert one(edges)[2].tolist() == [True] * 3 + [False] * 5
        assert one(x * 255)[2].all()


def test_inputs_that_a_wrapped_network_cannot_take_are_named(detector: Detector) -> None:
    wrapped = detector.wrap(classifier())
    for wrong in (points(4).numpy(), points(4).tolist(), None):
        with pytest.raises(ParameterError, match=rf"\[B, \*shape\] is needed; found {type(wrong).__name__}"):
            wrapped(wrong)
    with pytest.raises(ParameterError, match=r"found shape \[6\]; give one input alone as inputs\[None\]"):
        wrapped(points(4)[0])
    with pytest.raises(ModelError, match=r"cannot be run on inputs of shape \[4, 5\]: RuntimeError"):
        wrapped(points(4)[:, :5])
    network = small_network()
    images = lenient(detector, "logit_margin", network).wrap(network)
    with pytest.raises(ModelError, match=r"inputs of shape \[1, 6, 6\].*one input alone as inputs\[None\]"):
        images(inputs(4)[0])
    merged = nn.Sequential(nn.Flatten(0), nn.Unflatten(0, (1, -1)), nn.Linear(24, 3))
    with pytest.raises(ModelError, match=r"4 inputs gave a result of shape \[1, 3\]"):
        lenient(detector, "logit_margin", merged).wrap(merged)(points(4))


# It belongs to its model.


def test_another_model_or_preprocessing_is_refused(detector: Detector) -> None:
    weights = linear_network(3, 6, 0, torch.float32)
    others = {
        "state_sha256": classifier(seed=5),
        "mean": brittle.Classifier(weights, mean=0.5, std=0.3),
        "std": brittle.Classifier(weights, mean=0.4, std=0.2),
        "bounds": brittle.Classifier(weights, bounds=(0, 2), mean=0.4, std=0.3),
        "outputs": brittle.Classifier(weights, mean=0.4, std=0.3, outputs="probs"),
    }
    for name, other in others.items():
        for use in (detector.wrap, lambda other: detector.apply(other, points(8))):
            with pytest.raises(ModelError, match=f"{name} .* here ") as caught:
                use(other)
            assert caught.value.code == "detector_model"
    with pytest.raises(ModelError, match="state_sha256"):
        detector.wrap(linear_network(3, 6, 5, torch.float32))
    with pytest.raises(ModelError, match=r"torch\.nn\.Module"):
        detector.apply(brittle.Classifier(lambda x: x), points(8))
    assert detector.wrap(weights).forced is False


def test_force_is_written_into_every_row(detector: Detector) -> None:
    ours, forced = detector.apply(classifier(), points(8)), detector.apply(classifier(seed=5), points(8), force=True)
    assert ours["forced"].to_pylist() == [False] * 8
    assert forced["forced"].to_pylist() == [True] * 8
    assert detector.apply(classifier(), points(8), force=True)["forced"].to_pylist() == [False] * 8
    assert detector.wrap(classifier(seed=5), force=True).forced


def test_apply(detector: Detector) -> None:
    x = points(100, seed=4)
    x[7, 0] = math.nan
    labels = torch.randint(3, (100,), generator=torch.Generator().manual_seed(0))
    flags = detector.apply(classifier(), (x, labels))
    assert flags.schema == FLAGS
    assert flags["status"][7].as_py() == Status.NONFINITE_INPUT.slug
    assert (flags["brittle"][7].as_py(), flags["score"][7].as_py()) == (True, None)
    sound = [row for row in range(100) if row != 7]
    _, score, brittle_points = detector.wrap(classifier())(x[sound])
    assert flags["brittle"].take(sound).to_pylist() == brittle_points.tolist()
    assert flags["label"].to_pylist() == labels.tolist()
    assert np.allclose(flags["score"].take(sound).to_numpy(), score.detach().numpy(), rtol=0, atol=1e-5)


def test_however_many_points_have_no_score_all_are_flagged(detector: Detector) -> None:
    """`brittle.score` stops at more than 1 in 100; a detector must not leave its user without flags."""
    x = points(300, seed=4)
    x[100:200, 2] = math.nan
    flags = detector.apply(classifier(), x)
    assert len(flags) == 300
    assert flags["score"].null_count == 100
    assert all(flags["brittle"].to_pylist()[100:200])
    assert not all(flags["brittle"].to_pylist())
    with pytest.raises(DataError, match="too_many_failures"):
        brittle.score(classifier(), x, [LogitMargin()])
    assert len(brittle.score(classifier(), x, [LogitMargin()], most_failures=100).points) == 300
    few = brittle.score(classifier(), x[90:105], [LogitMargin()], batch_size=2)  # in batches none of which can be read
    assert few.scores["value"].null_count == 5
    with pytest.raises(DataError, match="at most 99 of 1000"):
        brittle.score(classifier(), x, [LogitMargin()], most_failures=99)


def test_a_tie_is_brittle_when_applied(detector: Detector) -> None:
    network = Given()
    x = torch.tensor([[1.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 1.5, 0.2], [0.1, 0.0, 1.5]])
    subject = brittle.Classifier(network, bounds=(-2, 2))
    flags = lenient(detector, "max_probability", network).apply(subject, x)
    assert flags["brittle"].to_pylist() == [True, False, False, False]
    assert flags["status"].to_pylist()[0] == Status.TIE.slug


def test_flags_are_written(tmp_path: Path, detector: Detector) -> None:
    flags = detector.apply(classifier(), points(8))
    names = ["=HYPERLINK(1)", "+1", "-1", "@x", "\tx", "plain", None, 'a,"b"\nc']
    flags = flags.set_column(2, FLAGS.field("name"), pa.array(names, pa.string()))
    assert pq.read_table(write_flags(flags, tmp_path / "flags.parquet")).equals(flags)
    read = csv.read_csv(write_flags(flags, tmp_path / "flags.csv"))
    assert read["name"].to_pylist()[:6] == ["'=HYPERLINK(1)", "'+1", "'-1", "'@x", "\\tx", "plain"]
    assert read["brittle"].to_pylist() == flags["brittle"].to_pylist()
    with pytest.raises(ParameterError, match=r"\.parquet or \.csv"):
        write_flags(flags, tmp_path / "flags.xlsx")
    with pytest.raises(StorageError, match="folder must exist"):
        write_flags(flags, tmp_path / "absent" / "flags.csv")


# The file.


@pytest.mark.parametrize("threshold", [0.1 + 0.2, 1e-310, 1 / 3, math.nextafter(1.0, 2.0), math.ulp(0.0)])
def test_file_round_trip_is_bit_exact(tmp_path: Path, detector: Detector, threshold: float) -> None:
    ours = replace(detector, threshold=threshold, epsilon=8 / 255)
    read = Detector.load(ours.save(tmp_path / "detector.json"))
    assert read == ours
    assert read.threshold.hex() == threshold.hex()
    assert read.save(tmp_path / "again.json").read_bytes() == (tmp_path / "detector.json").read_bytes()


def refused(folder: Path, content: bytes | str) -> str:
    path = folder / "bad.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DetectorFormatError, match="is not a detector") as caught:
        Detector.load(path)
    assert caught.value.exit_code == 6
    return str(caught.value)


def test_strictness(tmp_path: Path, detector: Detector) -> None:
    text = detector.save(tmp_path / "detector.json").read_text()
    good = json.loads(text)

    def changed(**changes: object) -> str:
        return json.dumps(good | changes)

    assert "unknown key 'more'" in refused(tmp_path, changed(more=1))
    assert "lacks threshold" in refused(tmp_path, json.dumps({k: v for k, v in good.items() if k != "threshold"}))
    assert "NaN is not a number" in refused(tmp_path, changed(threshold=math.nan))
    assert "Infinity is not a number" in refused(tmp_path, changed(threshold=math.inf))
    assert "finite number" in refused(tmp_path, text.replace(repr(detector.threshold), "1e999"))
    assert "stands twice" in refused(tmp_path, text.replace('"threshold"', '"epsilon": 0.1, "threshold"'))
    assert "bytes" in refused(tmp_path, " " * 1_000_001)
    assert "nested 10000 deep" in refused(tmp_path, "[" * 10_000 + "]" * 10_000)
    assert "nested" in refused(tmp_path, changed(parameters=[[[[[[[[[[]]]]]]]]]]))
    assert "UTF-8" in refused(tmp_path, b"\xff" + text.encode())
    assert "printable" in refused(tmp_path, changed(brittle="\x1b[31m"))
    assert "must be a finite number; found '1'" in refused(tmp_path, changed(threshold="1"))
    assert "finite number" in refused(tmp_path, changed(threshold=True))
    assert "whole number" in refused(tmp_path, changed(seed=1.0))
    assert "not valid JSON" in refused(tmp_path, text.replace('"seed": 1', '"seed": ' + "9" * 5000))
    assert "format 1" in refused(tmp_path, changed(format=2))
    assert "reads one of" in refused(tmp_path, changed(score="moments"))
    assert "norm" in refused(tmp_path, changed(norm="l7"))
    assert "hexadecimal" in refused(tmp_path, changed(model=good["model"] | {"state_sha256": "0"}))
    assert "2 are needed" in refused(tmp_path, changed(model=good["model"] | {"bounds": [0, 1, 2]}))
    assert "epsilon" in refused(tmp_path, changed(epsilon=-1))
    assert "is no rate" in refused(tmp_path, changed(true_positives=good["true_positives"] | {"flagged": 10**6}))
    assert "add up" in refused(tmp_path, changed(counts=good["counts"] | {"brittle": 1}))
    for other in ("", "null", "[]", "1", "{}", '"detector"', "{", text + "x"):
        refused(tmp_path, other)
    with pytest.raises(ModelError, match="cannot be read"):
        Detector.load(tmp_path / "absent.json")


HUGE, TINY, MINUS_ZERO, ONE, WHOLE = 1e308, 1e-320, -0.0, [1], 2**62
ABSURD = (-1, MINUS_ZERO, 0, 1, WHOLE, HUGE, -HUGE, TINY, 0.5, True, False, "1", "8/255", None, [], {}, ONE)
"""Values for a number; those that a field may have are told by `ALLOWED`."""

ALLOWED: dict[str, tuple[object, ...]] = {
    "threshold": (1, 0.5, TINY),  # a margin between logits; the next double above one that is 0 is as small
    "epsilon": (1, 0.5),  # within bounds from 0 to 1
    "tpr": (0.5,),  # 162 points are enough for a rate of 0.5
    "seed": (0, 1, WHOLE),  # any seed gives a split
    "model.bounds[0]": (-1, MINUS_ZERO, 0, TINY, 0.5),  # declared by the user, in any unit
    "model.bounds[1]": (1, 0.5),
    "model.mean[0]": (-1, MINUS_ZERO, 0, 1, TINY, 0.5),  # is subtracted
    "model.std[0]": (1, 0.5),
    "model.mean": (None, ONE),
    "model.std": (None, ONE),
    "counts.without_score": (1,),  # one of the 323 was flagged for want of a score
    "verdict.trusted": (False,),  # fails closed
    "verdict.tau": (None,),  # unknown
    "verdict.tau_low": (-1, MINUS_ZERO, 0, TINY, 0.5),  # an interval that is wider than need be
    "verdict.tau_high": (1,),
    "verdict.auroc_high": (1,),
}
"""Where the unit or the data are the user's, and nothing else in the file speaks against a value."""


def numbers_in(value: object, where: str = "") -> Iterator[str]:
    """The places of numbers in a JSON value."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from numbers_in(one, f"{where}.{key}".removeprefix("."))
    elif isinstance(value, list):
        yield where
        for number, one in enumerate(value):
            yield from numbers_in(one, f"{where}[{number}]")
    elif isinstance(value, int | float):
        yield where


def put(value: Any, where: str, other: object) -> Any:
    """A copy of a JSON value with `other` at a place."""
    changed = json.loads(json.dumps(value))
    *path, last = (int(key) if key.isdigit() else key for key in re.findall(r"\w+", where))
    holder = functools.reduce(operator.getitem, path, changed)
    holder[last] = other
    return changed


def refusal(path: Path) -> str | None:
    """Why a file is no detector; None where it is one."""
    try:
        Detector.load(path)
    except DetectorFormatError as error:
        return str(error)
    return None


def test_every_number_is_one_that_it_can_be(tmp_path: Path, detector: Detector) -> None:
    """Each is set to each of the absurd ones: refused with its name, or among the few that it may have."""
    good = json.loads(detector.save(tmp_path / "detector.json").read_text())
    places = list(numbers_in(good))
    assert len(places) > 35
    assert ALLOWED.keys() <= set(places)
    wrong = []
    for where, other in itertools.product(places, ABSURD):
        changed = put(good, where, other)
        (tmp_path / "f.json").write_text(json.dumps(changed))
        allowed = json.dumps(changed) == json.dumps(good) or any(other is one for one in ALLOWED.get(where, ()))
        said = refusal(tmp_path / "f.json")
        names = re.sub(r"\[\d\]", "", where).split(".")
        if (said is None) != allowed or (said is not None and not any(name in said for name in names)):
            wrong.append((where, other, said))
    assert wrong == [], "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    ("where", "value", "match"),
    [
        ("epsilon", 1e308, r"epsilon: margins in linf of inputs within bounds 1 apart lie in .* found epsilon 1e\+308"),
        ("epsilon", 8, "found epsilon 8"),
        ("true_positives.low", -1, "true_positives: rate: .* in .-1.0, .* is no rate"),
        ("true_positives.value", 0.5, "true_positives: value: 139 of 161 is no rate of 0.5"),
        ("tpr", -1, "true positive rate must lie between 0 and 1; found -1"),
        ("tpr", 1e-320, "tpr must lie between 0 and 1, and not round to either; found 1e-320"),
        ("tpr", 0.999, "needs 999 brittle points to calibrate on; found 162"),
        ("confidence", 0.9, r"139 of 161 have the interval .* at a confidence of 0\.9; found .0\.77"),
        ("threshold", -1, r"logit_margin lies in \[0, .*; found the threshold -1"),
        ("counts.points", 2**62, "do not add up"),
        ("margin", {"norm": "linf", "steps": -1}, "margins have no such parameters"),
        ("margin", {"norm": "l2"}, "parameters of margins in linf are written otherwise"),
        ("parameters", {"sigma": -1}, "logit_margin for linf has no such parameters"),
        ("verdict.auroc_low", 0.1, "trusted whose AUROC may be below"),
    ],
)
def test_numbers_that_cannot_be(where: str, value: object, match: str, tmp_path: Path, detector: Detector) -> None:
    good = json.loads(detector.save(tmp_path / "detector.json").read_text())
    assert re.search(match, refused(tmp_path, json.dumps(put(good, where, value))))


def test_rates_are_of_the_points_that_were_counted(tmp_path: Path, detector: Detector) -> None:
    """Rates with intervals of their own, but of other points."""
    fewer = Rate.of(np.arange(20) < 18, detector.confidence)
    for name in ("true_positives", "false_positives"):
        with pytest.raises(ParameterError, match=f"{name}: a rate of .* points is needed, as counted; found one of 20"):
            replace(detector, **{name: fewer})


def test_margins_beyond_the_bounds_are_not_held_to_them(table: Table) -> None:
    """Where the attacks may leave the bounds, epsilon may be larger than they are wide."""
    parameters = {"norm": "linf", "bounded": False}
    margins = [0.1] * 300 + [9.0] * 100
    run = with_margins(without_margins(table), margins, parameters=parameters)
    assert Detector.fit(run, epsilon=3.0).epsilon == 3.0
    with pytest.raises(ParameterError, match="found epsilon 3"):
        Detector.fit(with_margins(without_margins(table), margins), epsilon=3.0)


def test_hostile_strings_cost_linear_time(tmp_path: Path) -> None:
    """Half a million escaped quotes, and as many keys of which one stands twice, are refused at once."""
    refused(tmp_path, '"' + '\\"' * 499_000)
    keys = ",".join(f'"{number}":1' for number in range(90_000))
    assert "stands twice" in refused(tmp_path, "{" + keys + ',"0":1}')


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_the_named_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    refused(tmp_path_factory.getbasetemp(), content)


def test_mutated_files_are_refused_or_are_detectors(tmp_path: Path, detector: Detector) -> None:
    text = detector.save(tmp_path / "detector.json").read_bytes()
    rng, pieces = (
        random.Random(0),
        [b"{", b"}", b"[", b"]", b'"', b"null", b"1e999", b"-", b",", b"\\u0000", b"\xf0", b"9" * 400],
    )
    survivors = 0
    for _ in range(400):
        start = rng.randrange(len(text))
        mutant = text[:start] + rng.choice(pieces) + text[start + rng.randrange(4) :]
        (tmp_path / "mutant.json").write_bytes(mutant)
        try:
            survivors += isinstance(Detector.load(tmp_path / "mutant.json"), Detector)
        except DetectorFormatError:
            continue
    assert survivors < 200


def test_it_says_what_it_is(table: Table, detector: Detector) -> None:
    entropy = Detector.fit(table, epsilon=0.15, score="entropy")
    assert f"brittle when -entropy < {entropy.threshold!r}" in str(entropy)
    assert entropy.flag([-math.log(3), 0.0]).tolist() == [True, False]
    text = str(detector)
    assert repr(detector.threshold) in text
    assert "held-out" in text
    assert "verdict" in text
    assert isinstance(detector, Detector)
    assert issubclass(DetectorFormatError, BrittleError)
