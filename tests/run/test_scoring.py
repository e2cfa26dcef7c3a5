"""A run: the same bytes on every rerun, whatever the batch size and the order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.inputs import SIGMA
from helpers.problems import inputs, small_classifier, small_network
from helpers.small_runs import COUNT, SCORES, labels, run

import brittle
from brittle.data import array_points, choose_points
from brittle.errors import DataError, ParameterError
from brittle.scores import MonteCarlo, Softmax


@pytest.mark.parametrize("size", [None, 4096])
def test_too_many_failures_stop_the_run(size: int | None) -> None:
    x = inputs(1200)
    x[900:, 0, 0, 0] = float("nan")
    with pytest.raises(DataError, match=r"got no number \(at most 10 of 1000 may\); one of them: point") as caught:
        run(x, labels(1200), scores=[Softmax()], batch_size=size)
    assert caught.value.code == "too_many_failures"


def test_too_many_failures_among_chosen_points_stop_the_run() -> None:
    """The first of the points that are scored count, wherever in the data they stand."""
    x = inputs(1300)
    x[1100:1120, 0, 0, 0] = float("nan")
    points = choose_points(array_points(x), [str(row) for row in range(1050, 1300)])
    with pytest.raises(DataError, match="14 of the first 64 points got no number") as caught:
        brittle.score(small_classifier(), points, [Softmax()])
    assert caught.value.code == "too_many_failures"


def test_progress_counts_chosen_points() -> None:
    told: list[tuple[int, int]] = []
    points = choose_points(array_points(inputs(900)), [str(row) for row in range(0, 900, 3)])
    brittle.score(
        small_classifier(),
        points,
        [Softmax()],
        batch_size=128,
        progress=lambda done, count, _: told.append((done, count)),
    )
    assert told == [(done, 300) for done in (0, 64, 128, 192, 256, 300)]


@pytest.mark.parametrize("size", [0, -1, 2.5, "auto", True])
def test_what_is_no_batch_size(size: Any) -> None:
    with pytest.raises(ParameterError, match=r"must be a whole number of at least 1; found ") as caught:
        run(inputs(COUNT), labels(), batch_size=size)
    assert caught.value.code == "parameter"


@pytest.mark.parametrize("size", [1, 7, 32, 256])
def test_a_score_does_not_depend_on_the_batch(size: int) -> None:
    one, other = run(inputs(COUNT), labels()), run(inputs(COUNT), labels(), batch_size=size)
    for row, expected in zip(one.scores.to_pylist(), other.scores.to_pylist(), strict=True):
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


def test_same_bytes_on_a_rerun(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(inputs(COUNT), labels(), out=tmp_path / name)
    for shard in ("points-00000.parquet", "scores-00000.parquet"):
        assert (tmp_path / "one" / shard).read_bytes() == (tmp_path / "two" / shard).read_bytes()


def test_another_seed_is_another_draw() -> None:
    scores = [MonteCarlo(SIGMA, draws=20)]
    one, other = (run(inputs(COUNT), labels(), scores=scores, seed=seed) for seed in (0, 1))
    assert one.scores.column("value") != other.scores.column("value")


def test_wide_has_one_row_per_point() -> None:
    frame = run(inputs(COUNT), labels()).wide()
    assert len(frame) == COUNT
    label = "moments(draws=8, sigma=0.2)"
    assert np.allclose(frame[f"{label}.p_robust"], 1 - frame[f"{label}.flip_probability"])
    assert (frame[f"{label}.low"] <= frame[f"{label}.flip_probability"]).all()
    assert frame["logit_margin"].min() >= 0
    assert set(frame["correct"]) <= {True, False}


def test_a_bare_model_is_told_to_be_wrapped() -> None:
    with pytest.raises(ParameterError, match=r"found Sequential; wrap it: brittle.Classifier\(model\)"):
        brittle.score(small_network(), (inputs(2), None), SCORES)  # pyright: ignore[reportArgumentType] misuse is what is tested


def test_without_labels_correctness_is_unknown() -> None:
    frame = run(inputs(4), None).wide()
    assert frame["label"].isna().all()
    assert frame["correct"].isna().all()
