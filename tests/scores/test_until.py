"""Scores that stop once a question is answered: their shared copies, and the rate of wrong answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.problems import inputs, small_classifier
from scipy import stats
from torch import Tensor

import brittle
from brittle.errors import ParameterError
from brittle.noise import Gaussian, Transform
from brittle.scores import Moments, MonteCarlo, Score, Shrinkage
from brittle.store.schemas import unpack_votes

POINTS = 25
COUNTED: list[type[MonteCarlo] | type[Shrinkage]] = [MonteCarlo, Shrinkage]


def margin(x: Tensor) -> Tensor:
    """Return logits of two classes; under noise of sigma 1 a point at `m` flips with probability `Phi(-m)`."""
    return torch.stack((x[:, 0], torch.zeros_like(x[:, 0])), dim=1)


def rows_of(table: brittle.Table, name: str) -> pd.DataFrame:
    """Return the rows of a score without its parameters, in the order of the points."""
    rows: Any = table.scores.to_pandas()
    return rows[rows["score"] == name].drop(columns="parameters").reset_index(drop=True)


@pytest.mark.parametrize("kind", COUNTED, ids=lambda kind: kind.name)
@pytest.mark.parametrize(("limit", "beyond"), [(0.5, 0.15), (0.9, 0.07)])
def test_few_points_are_called_wrong(kind: type[MonteCarlo], limit: float, beyond: float) -> None:
    """Points near the limit on either side are each decided wrongly with probability 0.5% at most, despite many looks.

    More than 4 of 50 wrong decisions happen with probability 7e-6 at most.
    """
    truths = np.repeat([limit - beyond, limit + beyond], POINTS)
    x = torch.from_numpy(stats.norm.ppf(truths))[:, None]
    x = torch.where(x > 0, x, 1e-9)  # the first class is predicted everywhere
    truths = stats.norm.cdf(x[:, 0].numpy())
    flips = kind(1.0, draws=1000, limit=limit)(brittle.Classifier(margin, (-9, 9)), x, seed=1)
    holds, breaks = (flips.high <= 1 - limit).numpy(), (flips.low >= 1 - limit).numpy()
    assert int((holds & (truths < limit)).sum() + (breaks & (truths > limit)).sum()) <= 4
    assert int((holds & (truths > limit)).sum()) > POINTS // 2
    assert float(flips.passes.double().mean()) < 1001


def test_the_mean_over_points_is_right_despite_early_stops() -> None:
    """Uniform flip probabilities; 4.5 standard errors, so the false-fail rate is 7e-6."""
    truths = torch.linspace(0.0005, 0.4995, 800, dtype=torch.float64)
    x = -torch.special.ndtri(truths)[:, None]
    flips = MonteCarlo(1.0, draws=200, limit=0.9)(brittle.Classifier(margin, (-9, 9)), x, seed=1)
    errors = flips.value - truths
    assert abs(float(errors.mean())) < 4.5 * float(errors.std()) / len(truths) ** 0.5


@pytest.mark.parametrize("kind", COUNTED, ids=lambda kind: kind.name)
def test_a_precision_is_reached_for_any_limit(kind: type[MonteCarlo]) -> None:
    scores = [kind(0.5, draws=6000, precision=0.2, limit=limit) for limit in (0.5, 0.9, None)]
    assert scores == scores[:1] * 3
    flips = scores[0](small_classifier(), inputs(3))
    assert flips.counted is not None
    low, high = flips.counted
    assert bool((high - low <= 0.2).all())
    assert int(flips.passes.max()) < 6000


@pytest.mark.parametrize("kind", COUNTED, ids=lambda kind: kind.name)
def test_without_a_rule_every_point_has_exactly_the_draws(kind: type[MonteCarlo]) -> None:
    """The pairs and the passes are those of `moments`."""
    classifier, scores = small_classifier(), [kind(0.5, draws=40, limit=None), Moments(0.5, draws=40)]
    table = brittle.score(classifier, inputs(5), scores, skip_doctor=True)
    assert set(table.scores["passes"].to_pylist()) == {41}
    assert set(table.points["passes"].to_pylist()) == {41}
    assert rows_of(table, kind.name)["votes"].equals(rows_of(table, "moments")["votes"])


@pytest.mark.every_other
@pytest.mark.parametrize("kind", COUNTED, ids=lambda kind: kind.name)
@pytest.mark.parametrize("rule", [{"limit": 0.9}, {"limit": 0.6}, {"precision": 0.25}], ids=str)
def test_an_answer_does_not_depend_on_the_draws_left(kind: type[MonteCarlo | Shrinkage], rule: dict[str, Any]) -> None:
    """Every cell, to the last bit, except the value of a count, which is corrected for the whole rule."""
    cells = [] if kind is Shrinkage else ["value"]
    tables = {
        draws: rows_of(
            brittle.score(small_classifier(), inputs(30), [kind(0.5, draws=draws, **rule)], skip_doctor=True), kind.name
        ).drop(columns=cells)
        for draws in (1000, 500, 110, 60)
    }
    for draws, fewer in tables.items():
        width = fewer["counted_high"] - fewer["counted_low"]
        limit = 1 - rule.get("limit", 0.5)
        decided = (fewer["counted_high"] <= limit) | (fewer["counted_low"] >= limit)
        answered = decided if "limit" in rule else width <= rule["precision"]
        before = answered & (unpack_votes(fewer["votes"].tolist()).units < draws)
        assert fewer[before].equals(tables[1000][before])
        assert draws != 110 or 0 < before.sum() < 30


@pytest.mark.every_other
@pytest.mark.parametrize("rule", [{"limit": 0.9}, {"precision": 0.25}, {"limit": None}], ids=str)
@pytest.mark.parametrize("mirrored", [True, False])
def test_two_scores_of_the_same_rule_count_the_same_copies(rule: dict[str, Any], mirrored: bool) -> None:
    """Their intervals, votes and passes agree; each score is as in a separate run, and no copy is drawn twice."""
    lighter = Transform(lambda x, g: x + 0.5 * torch.randn(x.shape, generator=g), name="lighter")
    noise = Gaussian(0.5) if mirrored else lighter
    scores: list[Score] = [kind(noise=noise, draws=200, **rule) for kind in COUNTED]
    joint, *alone = (
        brittle.score(small_classifier(), inputs(20), group, skip_doctor=True)
        for group in (scores, *([score] for score in scores))
    )
    counting, mixing = (rows_of(joint, kind.name) for kind in COUNTED)
    for name in ("counted_low", "counted_high", "votes"):
        assert counting[name].equals(mixing[name])
    for table, kind in zip(alone, COUNTED, strict=True):
        assert rows_of(table, kind.name).equals(rows_of(joint, kind.name))
    inside = mixing["value"].between(mixing["counted_low"], mixing["counted_high"])
    assert inside.sum() > 10
    for name in ("low", "high"):
        pd.testing.assert_series_equal(counting.loc[inside, name], mixing.loc[inside, name], check_exact=True)
    assert joint.points["passes"].equals(alone[1].points["passes"])
    assert bool((mixing["passes"] > counting["passes"]).any()) == (mirrored and rule != {"limit": None})


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"limit": 0.8}, ("limit",)),
        ({"limit": None}, ("limit",)),
        ({"precision": 0.1}, ("precision",)),
        ({"draws": 40}, ("draws",)),
        ({"limit": 0.8, "draws": [40, 60]}, ("limit", "draws")),
    ],
    ids=str,
)
def test_a_rule_for_score_objects_is_refused(options: dict[str, Any], facts: tuple[str, ...]) -> None:
    """Score objects hold the rule in their fields."""
    with pytest.raises(ParameterError) as caught:
        brittle.score(small_classifier(), inputs(2), [Moments(0.1)], **options)
    assert caught.value.code == "parameter"
    assert all(fact in str(caught.value) for fact in facts)


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({}, [{"draws": 1000, "limit": 0.9}]),
        ({"limit": 0.8}, [{"draws": 1000, "limit": 0.8}]),
        ({"limit": None, "draws": 40}, [{"draws": 40}]),
        ({"limit": None, "draws": (20, 40)}, [{"draws": 20}, {"draws": 40}]),
        ({"precision": 0.3, "draws": 400}, [{"draws": 400, "precision": 0.3}]),
        ({"limit": 0.5, "precision": 0.3}, [{"draws": 1000, "precision": 0.3}]),
    ],
    ids=str,
)
def test_a_rule_applies_to_scores_by_name(options: dict[str, Any], fields: list[dict[str, Any]]) -> None:
    table = brittle.score(small_classifier(), inputs(2), "shrinkage", sigma=0.3, **options)
    rules = [
        {name: record.parameters[name] for name in ("draws", "limit", "precision") if name in record.parameters}
        for record in table.record.scores
    ]
    assert rules == fields


@pytest.mark.parametrize("kind", COUNTED, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    ("fields", "fact"),
    [({"limit": float("nan")}, "nan"), ({"limit": 1.0}, "1.0"), ({"precision": 0.0}, "0.0"), ({"draws": 3}, "3")],
    ids=str,
)
def test_a_rule_out_of_range_is_refused(kind: type[MonteCarlo], fields: dict[str, Any], fact: str) -> None:
    with pytest.raises(ParameterError, match=fact):
        kind(0.1, **fields)
