"""Which points hold, by their intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.problems import inputs, small_classifier
from helpers.tables import make_table

import brittle
from brittle.analysis import (
    decide,
    decisions,
    format_decisions,
    format_point_list,
    group_means,
    overview,
    point_list,
    probabilistic_accuracy,
)
from brittle.analysis.columns import typical
from brittle.analysis.decisions import KEPT, column_for, numbers_beside
from brittle.errors import DataError, ParameterError
from brittle.measure import Sample
from brittle.noise import Gaussian
from brittle.scores import Moments, MonteCarlo, Score, Shrinkage, Softmax


@pytest.fixture(scope="module")
def table() -> brittle.Table:
    x = inputs(30)
    x[3] = float("nan")
    return brittle.score(
        small_classifier(), x, [Moments(0.5, draws=20)], until="decided", limit=0.9, most_draws=300, skip_doctor=True,
        most_failures=None,
    )  # fmt: skip


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
    undecided = frame[frame["state"] == "undecided"]
    assert set(undecided["draws"]) == {300}
    assert bool((frame["draws"].dropna() <= 300).all())


def test_every_run_is_asked_for_any_limit(table: brittle.Table) -> None:
    moments = decide(table, 0.5, table["moments"])
    assert moments["state"].notna().sum() == 29
    assert set(moments["draws"].dropna()) == {20}
    assert decide(table, 0.5)["state"].notna().sum() == 29


def test_a_wide_table_holds_the_states(table: brittle.Table) -> None:
    name = "monte_carlo(draws=300, limit=0.9, sigma=0.5).state"
    assert table.wide()[name].tolist() == decide(table)["state"].tolist()
    assert not [column for column in table.wide().columns if column.startswith("moments") and column.endswith("state")]


def test_decisions_are_counted(table: brittle.Table) -> None:
    (row,) = decisions(table).to_dict("records")
    states = decide(table)["state"].tolist()
    assert [row[state] for state in ("holds", "breaks", "undecided")] == [
        states.count(state) for state in ("holds", "breaks", "undecided")
    ]
    assert (row["points"], row["limit"], row["most"]) == (29, 0.9, 300)
    assert row["draws"] == pytest.approx(decide(table)["draws"].mean())
    said = format_decisions(decisions(table))
    assert "does it hold?" in said
    assert f" {row['holds']} " in said
    assert format_decisions(decisions(make_table(points=5))) == ""


@pytest.mark.parametrize("limit", [0.0, 1.0, -1.0, float("nan"), "0.9", [0.9]])
def test_what_is_no_limit(limit: Any, table: brittle.Table) -> None:
    with pytest.raises(ParameterError, match="limit must be a number between 0 and 1"):
        decide(table, limit)


@pytest.mark.parametrize("column", ["moments", 5, 0.9])
def test_what_is_no_column(column: Any, table: brittle.Table) -> None:
    for ask in (decide, probabilistic_accuracy):
        with pytest.raises(ParameterError, match="column must be a column such as"):
            ask(table, 0.9, column)
    with pytest.raises(ParameterError, match="counts must be a column such as"):
        group_means(table, counts=column)
    with pytest.raises(ParameterError, match="rho must be a probability"):
        probabilistic_accuracy(table, "0.9")  # type: ignore[arg-type]


def test_a_limit_is_needed_where_none_was_asked() -> None:
    run = make_table(points=5)
    with pytest.raises(ParameterError, match="was not drawn for a limit; give one"):
        decide(run)


def test_a_run_without_flip_probabilities_holds_nothing() -> None:
    run = brittle.score(small_classifier(), inputs(4), [brittle.scores.LogitMargin()])
    with pytest.raises(DataError, match="holds no flip probability"):
        decide(run, 0.9)
    both = brittle.score(small_classifier(), inputs(4), [MonteCarlo(0.5, draws=50), Softmax()])
    assert decide(both, 0.9, both["monte_carlo"])["draws"].tolist() == [50] * 4
    with pytest.raises(DataError, match="Softmax is no measurement under noise"):
        decide(both, 0.9, both["softmax"])


def test_draws_in_two_stages_are_those_of_each_point() -> None:
    table = brittle.score(small_classifier(), inputs(40), [Shrinkage(0.1, draws=104, adaptive=True)])
    assert set(decide(table, 0.9)["draws"]) == {32, 104}
    column = table["shrinkage"]
    assert column.label == "shrinkage(adaptive=True, draws=104, sigma=0.1)"
    assert column.stops
    assert column.draws is None
    assert table.record.account.passes == 40 + decide(table, 0.9)["draws"].sum()


def test_of_several_columns_for_a_limit_the_one_at_the_noise_that_speaks_answers() -> None:
    scores = [MonteCarlo(sigma, draws=40, limit=0.9) for sigma in (1e-6, 0.5)]
    narrow = MonteCarlo(0.5, draws=40, limit=0.9, precision=0.5)
    run = brittle.score(small_classifier(), inputs(20), [scores[0], narrow, scores[1], Moments(0.5), Moments(1e-6)])
    assert typical(run.columns).setting.sigma == 0.5  # type: ignore[union-attr]
    assert column_for(run, 0.9).label == run[scores[1]].label
    assert column_for(run, 0.9, sigma=1e-6).label == run[scores[0]].label
    assert column_for(run, 0.8).setting.sigma == 0.5
    with pytest.raises(DataError, match="no flip probability at sigma 3"):
        column_for(run, 0.9, sigma=3.0)


@pytest.mark.parametrize("kept", [MonteCarlo(0.5, draws=500), Shrinkage(0.5, draws=500)], ids=lambda score: score.name)
def test_a_finished_run_keeps_its_numbers_when_its_points_are_decided(kept: Score, tmp_path: Path) -> None:
    """The points get their states from the copies that were drawn for the limit, and no wider an interval by these."""
    x, run = inputs(30), {"out": tmp_path / "run", "resume": True, "skip_doctor": True}
    before = brittle.score(small_classifier(), x, [kept], **run)
    after = brittle.score(small_classifier(), x, [kept], **run, until="decided", limit=0.9, most_draws=3000)
    stopped = next(one for one in after.columns if one.limit == 0.9)
    assert column_for(after, 0.9) is stopped
    assert numbers_beside(after, stopped) is after[kept]
    was, now = point_list(before), point_list(after)
    assert now.drop(columns="state").equals(was.drop(columns="state"))
    states = now.set_index("point")["state"]
    assert states.loc[after.points["point"].to_pylist()].tolist() == decide(after)["state"].tolist()
    found = overview(after)
    assert (found.column, found.numbers) == (stopped, after[kept])
    assert [found.count(state) for state in ("holds", "breaks")] == [sum(states == one) for one in ("holds", "breaks")]
    assert f"states by {stopped.label}" in format_point_list(now, after, after[kept], 5, stopped)


@pytest.mark.parametrize(
    ("other", "limit", "stands"),
    [
        (MonteCarlo(0.5, draws=122), 0.9, True),
        (MonteCarlo(0.5, draws=120), 0.9, False),
        (MonteCarlo(0.5, draws=120), 0.5, True),
        (Shrinkage(0.5, draws=204), 0.9, True),
        (Shrinkage(0.5, draws=200), 0.9, False),
        (MonteCarlo(0.2, draws=500), 0.9, False),
        (MonteCarlo(0.5, draws=500, limit=0.8), 0.9, False),
        (Moments(0.5, draws=500), 0.9, True),
        (Moments(0.5, draws=120), 0.9, False),
    ],
    ids=repr,
)
def test_only_a_count_of_enough_copies_at_every_point_stands_beside_the_states(
    other: Score, limit: float, stands: bool
) -> None:
    """61 copies without a flip are the fewest by which a point holds at 0.9, and 10 at 0.5; a pair counts as one."""
    stopped = MonteCarlo(0.5, draws=100, limit=limit)
    table = brittle.score(small_classifier(), inputs(12), [stopped, other], skip_doctor=True)
    assert numbers_beside(table, table[stopped]) is table[other if stands else stopped]


@pytest.mark.parametrize("draws", [4, 10, 60, 204, 500, 7000, 100_000])
def test_every_point_has_the_copies_that_draws_by_need_are_taken_to_give(draws: int) -> None:
    """What stands beside states is known before anything is drawn, so it is read off the number of draws."""
    assert min(3 * draws // 10, KEPT) <= Sample(Gaussian(0.5), draws, adaptive=True).first_stage
