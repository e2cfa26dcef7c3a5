"""A call of a score gives the numbers that a run writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.inputs import EXAMPLES
from helpers.problems import Wrapped, inputs, small_classifier

import brittle
from brittle.errors import DataError, ParameterError
from brittle.estimate import Evidence, Status
from brittle.scores import FeatureDistance, InputMargin, LogitMargin, Moments, RareEvent, Score, Taylor

pytestmark = pytest.mark.usefixtures("short_search")

SEED, CONFIDENCE = 3, 0.9


def read_column(table: brittle.Table, name: str) -> list[object]:
    return table.scores[name].to_pylist()


def numbers(values: torch.Tensor) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


@pytest.mark.every_other
@pytest.mark.parametrize("score", EXAMPLES, ids=lambda score: score.label)
def test_a_call_gives_what_a_run_writes(score: Score) -> None:
    """For more points than a batch holds, one of them broken; every bit of every number is the same."""
    x = inputs(6 if isinstance(score, InputMargin | FeatureDistance | RareEvent) else 37)
    x[4, ..., 0] = torch.nan
    result = score(small_classifier(), x, seed=SEED, confidence=CONFIDENCE)
    table = brittle.score(
        small_classifier(), x, [score], seed=SEED, confidence=CONFIDENCE, most_failures=None, skip_doctor=True
    )
    for name in ("value", "low", "high"):
        assert numbers(getattr(result, name)) == read_column(table, name)
    assert [Status(code).slug for code in result.status.tolist()] == read_column(table, "status")
    assert result.passes.tolist() == read_column(table, "passes")
    if result.evidence is not None:
        slugs = [Evidence(code).slug for code in result.evidence.tolist()]
        assert slugs[:4] == read_column(table, "evidence")[:4]
    if result.counted is not None:
        columns = [read_column(table, name) for name in ("counted_low", "counted_high")]
        assert [numbers(end) for end in result.counted] == columns


def test_ids_and_seed_key_the_noise() -> None:
    score, x = Moments(0.3, draws=20), inputs(1).expand(3, -1, -1, -1)
    flips = score(small_classifier(), x, ids=["a", "b", 0])
    assert score(small_classifier(), x[:1], ids=["b"]).value.item() == flips.value[1].item()
    assert score(small_classifier(), x[:1]).value.item() == flips.value[2].item()
    assert len(set(flips.value.tolist())) > 1
    assert not torch.equal(flips.value, score(small_classifier(), x, ids=["a", "b", 0], seed=1).value)


def test_points_that_fail_have_a_status() -> None:
    x = inputs(3)
    x[1] = torch.inf
    broken = brittle.Classifier(Wrapped(lambda x, logits: torch.where(x.flatten(1)[:, :1] > 0.5, torch.nan, logits)))
    x[2, 0, 0, 0] = 0.9
    x[0, 0, 0, 0] = 0.1
    flips = Taylor(0.1)(broken, x)
    assert flips.status.tolist() == [Status.OK, Status.NONFINITE_INPUT, Status.NONFINITE_LOGITS]
    assert flips.value.isnan().tolist() == [False, True, True]
    assert flips.passes[1:].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("error", "sentence", "arguments"),
    [
        (ParameterError, "expected a brittle.Classifier, found Linear", lambda x: (torch.nn.Linear(1, 2), x)),
        (DataError, "outside \\[0, 1\\] in 2 of 2 rows", lambda x: (small_classifier(), x + 5.0)),
        (DataError, "at least 1", lambda x: (small_classifier(), x[:0])),
        (DataError, "float", lambda x: (small_classifier(), x.long())),
        (DataError, "ids", lambda x: (small_classifier(), x, {"ids": ["a"]})),
        (DataError, "share the id", lambda x: (small_classifier(), x, {"ids": ["a", "a"]})),
        (ParameterError, "the seed must be", lambda x: (small_classifier(), x, {"seed": -1})),
        (ParameterError, "the confidence must lie", lambda x: (small_classifier(), x, {"confidence": 1.0})),
    ],
)
def test_misuse_is_refused_as_in_a_run(
    error: type[brittle.errors.BrittleError], sentence: str, arguments: Callable[[torch.Tensor], tuple[Any, ...]]
) -> None:
    classifier, x, *more = arguments(inputs(2))
    with pytest.raises(error, match=sentence):
        LogitMargin()(classifier, x, **(more[0] if more else {}))
