"""A run: the same bytes on every rerun, whatever the batch size and the order."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from typing import Any

import pytest
from helpers.problems import inputs, small_classifier
from helpers.small_runs import COUNT, SCORES, labels, run

import brittle
from brittle.cli.options import DataOptions, ModelOptions
from brittle.cli.score import RunOptions, WorkerOptions
from brittle.cli.score_options import BY_DEFAULT, ScoreOptions
from brittle.data import array_points, choose_points
from brittle.errors import DataError, ParameterError
from brittle.scores import Softmax


@pytest.mark.parametrize(("size", "start"), [(None, 0), (4096, 0), (None, 850)])
def test_too_many_failures_stop_the_run(size: int | None, start: int) -> None:
    """The points that are scored at the start count, wherever they are in the data."""
    x = inputs(1200)
    x[900:, 0, 0, 0] = float("nan")
    points = choose_points(array_points(x), [str(row) for row in range(start, 1200)])
    with pytest.raises(DataError, match=r"got no number \(at most 10 of 1000 may\); one of them: point") as caught:
        brittle.score(small_classifier(), points, [Softmax()], batch_size=size)
    assert caught.value.code == "too_many_failures"


def test_progress_counts_chosen_points() -> None:
    calls: list[tuple[int, int]] = []
    points = choose_points(array_points(inputs(900)), [str(row) for row in range(0, 900, 3)])
    brittle.score(
        small_classifier(),
        points,
        [Softmax()],
        batch_size=128,
        progress=lambda done, count, _: calls.append((done, count)),
    )
    assert calls == [(done, 300) for done in (*range(0, 300, 32), 300)]


@pytest.mark.parametrize("size", [0, 2.5, "auto", True])
def test_a_bad_batch_size_is_refused(size: Any) -> None:
    with pytest.raises(ParameterError, match=r"must be a whole number of at least 1; found ") as caught:
        run(inputs(COUNT), labels(), batch_size=size)
    assert caught.value.code == "parameter"


@pytest.mark.parametrize("size", [1, 7, 256])
def test_a_score_does_not_depend_on_the_batch(size: int) -> None:
    table, batched = run(inputs(COUNT), labels()), run(inputs(COUNT), labels(), batch_size=size)
    for row, expected in zip(table.scores.to_pylist(), batched.scores.to_pylist(), strict=True):
        assert (row["point"], row["score"]) == (expected["point"], expected["score"])
        assert row["value"] == pytest.approx(expected["value"], abs=1e-5)


def test_the_order_of_points_does_not_matter() -> None:
    ids = [f"point {number}" for number in range(COUNT)]
    forward = brittle.score(small_classifier(), brittle.data.array_points(inputs(COUNT), ids=ids), SCORES)
    backward = brittle.score(
        small_classifier(), brittle.data.array_points(inputs(COUNT).flip(0), ids=ids[::-1]), SCORES
    )
    values = [{(r["point"], r["score"]): r["value"] for r in table.scores.to_pylist()} for table in (forward, backward)]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


def test_options_are_called_and_set_as_on_the_command_line() -> None:
    """Except for files and separate processes; some defaults are None in Python."""
    groups = (ModelOptions, DataOptions, ScoreOptions, RunOptions, WorkerOptions)
    typed = {option.name: option.default for group in groups for option in fields(group)} | {"out": None}
    python_only = {"classifier", "data", "y", "progress", "command", "most_failures", "name", "reading"}
    defaults = {"scores": BY_DEFAULT, "noise": "gaussian", "decision": "class", "limit": None, "draws": (), "sigma": ()}
    for name, parameter in signature(brittle.score).parameters.items():
        if name not in python_only:
            assert typed[name] == defaults.get(name, parameter.default), name
    assert {*brittle.__all__, "analysis", "data", "noise", "scores"} <= {*dir(brittle)}
