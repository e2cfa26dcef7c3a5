"""What only one of two runs holds is named with the reason, and the command that is named mends it."""

from __future__ import annotations

from helpers.tables import make_table

from brittle.analysis.unpaired import unpaired

TAYLOR = make_table(points=4, scores=("taylor",), sigmas=(0.1, 0.2))
MANY = make_table(points=4, scores=("moments",), sigmas=(0.1,), budgets=(10, 50, 20))


def test_runs_of_the_same_scores_leave_nothing_out() -> None:
    assert unpaired(TAYLOR, TAYLOR) == []


def test_the_reason_is_named() -> None:
    other = make_table(points=4, scores=("taylor",), sigmas=(0.2, 0.3))
    said, advice = unpaired(TAYLOR, other)
    assert said.endswith("taylor(sigma=0.1) only in the first, taylor(sigma=0.3) only in the second (sigma differs)")
    assert advice == "score the second as the first: brittle score MODEL DATA --out RUN --scores taylor --sigma 0.1"
    said, advice = unpaired(make_table(points=4, scores=("taylor",), sigmas=(0.2,)), other)
    assert said.endswith(": taylor(sigma=0.3) only in the second (sigma differs)")
    assert advice.startswith("score the first as the second: ")


def test_of_several_numbers_of_draws_the_largest_is_named() -> None:
    said, advice = unpaired(MANY, TAYLOR)
    assert ": moments(draws=50, sigma=0.1) only in the first, taylor(sigma=0.1), taylor(sigma=0.2) only " in said
    assert "(the score differs)" in said
    assert "--set moments.draws=50" in advice
