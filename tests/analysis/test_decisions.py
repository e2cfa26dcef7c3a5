"""States of points (holds, breaks, undecided), by their intervals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.known_groups import made
from helpers.problems import inputs, small_classifier
from helpers.tables import make_table

import brittle
from brittle.analysis import class_bias, decide, overview, point_list, probabilistic_accuracy
from brittle.analysis.decisions import column_for, numbers_beside
from brittle.analysis.point_list import format_point_list
from brittle.errors import DataError, ParameterError
from brittle.extensions.probabilistic_accuracy import _interval
from brittle.extensions.report.render import open_contents
from brittle.extensions.report.script_data import page_data
from brittle.extensions.workers.join import join
from brittle.intervals import clopper_pearson
from brittle.scores import Moments, MonteCarlo, Score, Shrinkage, Softmax
from brittle.store.representative import typical


@pytest.fixture(scope="module")
def table() -> brittle.Table:
    x = inputs(30)
    x[3] = float("nan")
    scores: list[Score] = [Moments(0.5, draws=20), MonteCarlo(0.5, draws=300)]
    return brittle.score(small_classifier(), x, scores, skip_doctor=True, most_failures=None)


def test_states_are_those_of_the_interval(table: brittle.Table) -> None:
    column = table["monte_carlo"]
    frame = decide(table)
    assert frame["point"].tolist() == table.points["point"].to_pylist()
    for (low, high), state, value in zip(
        column.rows[["low", "high"]].to_numpy(), frame["state"], column.value, strict=True
    ):
        p_low, p_high = 1 - high, 1 - low
        expected = "holds" if p_low >= 0.9 else "breaks" if p_high <= 0.9 else "undecided"
        assert state == (None if np.isnan(value) else expected)
    assert set(frame["state"]) == {"holds", "breaks", "undecided", None}
    assert frame["draws"].isna().tolist() == [point == 3 for point in range(30)]
    assert frame["draws"].max() <= 300


@pytest.mark.parametrize("random", [False, True])
def test_the_draws_are_the_counted_copies(random: bool) -> None:
    """Mirror images and the many clean passes of a random model do not count."""
    shape = torch.linspace(-0.3, 0.3, 31)[:, None]
    classifier = brittle.Classifier(lambda x: torch.cat([x, -x], 1), bounds=None, random=random)
    scores: list[Score] = [MonteCarlo(0.1, draws=60)] if random else [MonteCarlo(0.1), Shrinkage(0.1)]
    run = brittle.score(classifier, shape, scores, skip_doctor=True)
    for column in run.columns:
        counted = [np.frombuffer(cell, "<u4")[:2].prod() for cell in column.votes if cell is not None]
        assert decide(run, column=column)["draws"].tolist() == counted
    assert random or (run["shrinkage"].passes > run["monte_carlo"].passes).any()


def test_a_wide_table_holds_the_states(table: brittle.Table) -> None:
    name = "monte_carlo(draws=300, limit=0.9, sigma=0.5).state"
    assert table.frame(whole=True)[name].tolist() == decide(table)["state"].tolist()
    assert not [
        column
        for column in table.frame(whole=True).columns
        if column.startswith("moments") and column.endswith("state")
    ]


def test_a_run_without_a_limit_needs_one() -> None:
    run = make_table(points=5)
    with pytest.raises(ParameterError, match="was not drawn for a limit; give one"):
        decide(run)


def test_a_run_without_flip_probabilities_has_no_states() -> None:
    run = brittle.score(small_classifier(), inputs(4), [brittle.scores.LogitMargin()])
    with pytest.raises(DataError, match="holds no flip probability"):
        decide(run, 0.9)
    counted = brittle.score(small_classifier(), inputs(4), [MonteCarlo(0.5, draws=50, limit=None), Softmax()])
    assert decide(counted, 0.9, counted["monte_carlo"])["draws"].tolist() == [50] * 4
    with pytest.raises(DataError, match="Softmax is no measurement under noise"):
        decide(counted, 0.9, counted["softmax"])


def test_the_column_at_the_representative_noise_is_chosen() -> None:
    scores = [MonteCarlo(sigma, draws=40, limit=0.9) for sigma in (1e-6, 0.5)]
    narrow = MonteCarlo(0.5, draws=40, limit=0.9, precision=0.5)
    run = brittle.score(small_classifier(), inputs(20), [scores[0], narrow, scores[1], Moments(0.5), Moments(1e-6)])
    assert typical(run.columns).setting.sigma == 0.5  # type: ignore[union-attr]
    assert column_for(run, 0.9).label == run[scores[1]].label
    assert column_for(run, 0.9, sigma=1e-6).label == run[scores[0]].label
    assert column_for(run, 0.8).setting.sigma == 0.5
    with pytest.raises(DataError, match="no flip probability at sigma 3"):
        column_for(run, 0.9, sigma=3.0)


@pytest.mark.parametrize("count", [kind(0.5, draws=200, limit=None) for kind in (MonteCarlo, Shrinkage)], ids=repr)
def test_a_full_count_gives_the_numbers_beside_the_states(count: Score, tmp_path: Path) -> None:
    """No interval becomes wider when the points of a run are decided later, and no mean becomes biased."""
    x, gate = (inputs(30), torch.arange(30) % 3), MonteCarlo(0.5, draws=3000, limit=0.9)
    brittle.score(small_classifier(), x, [count], skip_doctor=True, out=tmp_path / "first")
    brittle.score(small_classifier(), x, [gate], skip_doctor=True, out=tmp_path / "later")
    join(tmp_path / "run", [tmp_path / "first", tmp_path / "later"])
    joined = brittle.read_table(tmp_path / "run")
    decider, numbers = next(column for column in joined.columns if column.limit == 0.9), joined[count]
    screen, bias = overview(joined, 0.9), class_bias(joined, numbers)
    assert (screen.column, screen.numbers) == (decider, numbers)
    assert screen.bias is not None
    assert bias is not None
    pd.testing.assert_frame_equal(screen.bias.classes, bias.classes)
    rows = point_list(joined, limit=0.9).set_index("point").loc[joined.points["point"].to_pylist()]
    assert (1.0 - rows["value"]).to_numpy() == pytest.approx(numbers.value.to_numpy())
    assert rows["state"].tolist() == decider.states(0.9).tolist() == decide(joined, 0.9)["state"].tolist()
    assert f"states by {decider.shown}" in format_point_list(point_list(joined, limit=0.9), joined, numbers, 5, decider)
    page: Any = page_data(open_contents(joined))
    column = page["columns"][page["representative"]]
    assert (column["label"], page["columns"][column["decidedBy"]]["label"]) == (numbers.label, decider.label)


@pytest.mark.parametrize(
    "count",
    [
        MonteCarlo(0.2, draws=500, limit=None),
        MonteCarlo(0.5, draws=500, clip=True, limit=None),
        Moments(0.5, draws=500),
    ],
)
def test_only_a_count_of_the_same_noise_gives_the_numbers(count: Score) -> None:
    gate = MonteCarlo(0.5, draws=100, limit=0.9)
    table = brittle.score(small_classifier(), inputs(12), [gate, count], skip_doctor=True)
    assert numbers_beside(table, table[gate]) is table[gate]


def test_points_are_sorted_by_their_intervals() -> None:
    ends = [(0.0, 0.04), (0.06, 0.2), (0.04, 0.06), (0.0, 0.05), (0.0, 0.01), (0.0, 0.01), None]
    accuracy = probabilistic_accuracy(made(ends, [True, True, True, True, False, None, True]), 0.95)
    assert (accuracy.points, accuracy.correct, accuracy.holding, accuracy.undecided) == (6, 5, 2, 2)
    assert (accuracy.lower, accuracy.upper) == pytest.approx((2 / 6, 4 / 6))
    low_end, high_end = float(clopper_pearson(2, 6, 0.99)[0]), float(clopper_pearson(4, 6, 0.99)[1])
    assert accuracy.low == pytest.approx((low_end - 0.005) / 0.995)
    assert accuracy.high == pytest.approx(min(1.0, high_end / 0.995))


def test_without_labels_there_is_no_accuracy() -> None:
    accuracy = probabilistic_accuracy(made([(0.0, 0.1)] * 2, [None, None]), 0.9)
    assert (accuracy.points, accuracy.low, accuracy.high) == (0, 0.0, 1.0)
    assert math.isnan(accuracy.lower)


def test_the_interval_covers() -> None:
    """Count misses in 1,000 replicates at 99%, half the points near the edge; over 21 have probability below 1e-3."""
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(1000):
        flip, correct = rng.choice([0.0, 0.049, 0.051, 0.2], 60, p=[0.3, 0.3, 0.3, 0.1]), rng.random(60) < 0.9
        low, high = clopper_pearson(rng.binomial(400, flip), 400, 0.99)
        ends = _interval(int((correct & (high <= 0.05)).sum()), int((correct & (low <= 0.05)).sum()), 60, 0.99)
        misses += not ends[0] <= 0.9 * 0.6 <= ends[1]
    assert misses <= 21


def test_an_invalid_probability_is_refused() -> None:
    table = make_table(points=5, scores=("taylor", "logit_margin"), sigmas=(0.1,), images=False)
    for rho in (0.0, -0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="above 0 and at most 1; found"):
            probabilistic_accuracy(table, rho)
    with pytest.raises(DataError, match="no probability of keeping the prediction"):
        probabilistic_accuracy(table, 0.9, table["logit_margin"])
