"""What so many noisy copies can show: bounds by SciPy's beta distribution, and runs in which no copy flips."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import ceil

import numpy as np
import pyarrow as pa
import pytest
from helpers.known_groups import HOLD, OPEN, counted, made
from helpers.problems import inputs, small_classifier
from scipy.stats import beta

import brittle
from brittle.analysis.decisions import TooFew, best_ends
from brittle.analysis.overview import Overview, overview
from brittle.analysis.overview_text import LARGEST, enough_draws, how_sure, next_steps
from brittle.estimate import MOST_DRAWS
from brittle.intervals import sequence_interval
from brittle.scores import MonteCarlo, NoiseScore, Shrinkage, Taylor
from brittle.store.schemas import SCORES
from brittle.store.table import Table

QUIET = 1e-4
"""Noise so small that no copy of the points below flips."""


@cache
def quiet(score: NoiseScore) -> Table:
    """A run in which no copy flips."""
    return brittle.score(small_classifier(), inputs(4), [score])


def by_count(table: Table) -> Table:
    """`table` with the intervals by counting alone."""
    rows = table.long()
    rows[["low", "high"]] = rows[["counted_low", "counted_high"]]
    return replace(table, scores=pa.Table.from_pandas(rows, schema=SCORES, preserve_index=False))


def too_few(found: Overview) -> bool:
    return "cannot show that a prediction holds" in how_sure(found)


@pytest.mark.parametrize("limit", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("draws", [20, 60, 200, 1000])
def test_too_few_copies_are_those_with_which_a_point_that_none_flips_is_undecided(draws: int, limit: float) -> None:
    found = overview(quiet(MonteCarlo(QUIET, draws=draws)), limit)
    assert found.count("breaks") == 0
    assert too_few(found) == (found.count("undecided") > 0)


@pytest.mark.parametrize("limit", [0.9, 0.97])
def test_a_run_with_too_few_copies_says_so_and_one_with_enough_does_not(limit: float) -> None:
    """None of the copies flips, so that a point holds as soon as counting so many can show it."""
    needed = ceil(np.log(0.005) / np.log(limit))
    for draws in (20, needed - 1, needed):
        found = overview(quiet(MonteCarlo(QUIET, draws=draws + draws % 2)), limit)
        assert (found.too_few is None) == (found.count("holds") == 4), draws
        assert (found.count("undecided") == 4) == (found.too_few is not None), draws
    assert found.count("holds") in (0, 4)


def test_without_intervals_no_number_of_copies_is_blamed() -> None:
    column = quiet(Taylor(QUIET))["taylor"]
    assert set(column.rests_on) == {"extrapolated"}
    assert best_ends(column, 0.99)[1] == {}


@pytest.mark.parametrize("flips", [[0, 3, 0], [3, 1, 2]], ids=["some without flips", "none without flips"])
def test_one_number_of_copies_gives_the_others_and_clopper_and_pearson_are_never_above(flips: list[int]) -> None:
    """0 of 20 end at `beta.ppf(0.995, 1, 20)`, and 0 of `n` at `1 - 0.005^(1 / n)`."""
    column = counted([20] * 3, flips).columns[0]
    copies, best = best_ends(column, 0.99)
    assert copies.tolist() == [20.0] * 3
    assert best == {20: pytest.approx(beta.ppf(0.995, 1, 20))}
    found = overview(counted([20] * 3, flips), 0.9).too_few
    assert found is not None
    assert found.points == overview(counted([20] * 3, flips), 0.9).count("undecided")


def test_a_point_that_holds_by_a_model_shows_that_its_copies_are_enough() -> None:
    """Counting alone could not say so; of the other points the copies are not blamed."""
    run = counted([20] * 2, [0, 3])
    frame = run.long()
    frame.loc[0, ["low", "value", "high"]] = [0.0, 0.01, 0.05]
    modelled = replace(run, scores=pa.Table.from_pandas(frame, schema=SCORES, preserve_index=False))
    found = overview(modelled, 0.9)
    assert (found.count("holds"), found.count("undecided"), found.too_few) == (1, 1, None)


def test_where_points_have_unlike_numbers_of_copies_those_with_too_few_are_counted() -> None:
    """`0.005^(1/104)` is 0.95, so that there 60 copies are too few; at 0.5 they are enough."""
    run = counted([60, 60, 200, 200, 60], [0, 0, 0, 10, 40])
    found = overview(run, 0.95)
    assert (found.count("holds"), found.count("undecided"), found.count("breaks")) == (1, 3, 1)
    assert found.too_few == TooFew(points=2, undecided=3, copies=60, every=False)
    assert (
        "2 of 3 undecided points have at most 60 copies, which cannot show that a prediction holds at 0.95, even where "
        "none of them flips." in how_sure(found)
    )
    assert overview(run, 0.5).too_few is None


def test_the_default_score_at_a_limit_that_its_copies_cannot_show() -> None:
    found = overview(by_count(quiet(Shrinkage(QUIET))), 0.995)
    assert found.column is not None
    assert found.too_few is not None
    assert (found.too_few.points, found.too_few.copies) == (4, found.column.passes.max() - 1)


def test_the_sentence_and_the_command_name_the_same_rule() -> None:
    for limit, more in ((0.9, ""), (0.999, " --most-draws 100000")):
        found = overview(counted([20] * 3, [0, 1, 9]), limit)
        rule = f"--until decided --limit {limit}{more}"
        assert (
            f"The command of the run with {rule}, into another folder, draws as many as each point needs."
            in how_sure(found)
        )
        assert next_steps(found)[0].command.endswith(rule)
    assert how_sure(overview(counted([20] * 2, [0, 0]), 0.9)).count("20 copies a point cannot show") == 1
    assert not too_few(overview(made([HOLD, OPEN]), 0.9)), "a table that does not tell what was counted"


@pytest.mark.parametrize("limit", [0.5, 0.9, 0.99, 0.998, 0.999, 0.9999, 0.999995])
@pytest.mark.parametrize("confidence", [0.9, 0.99, 0.999])
def test_the_draws_that_are_named_decide_a_point_that_never_flips(limit: float, confidence: float) -> None:
    most = enough_draws(limit)
    assert MOST_DRAWS <= most <= LARGEST
    assert sequence_interval(0, most, confidence)[1] <= 1.0 - limit


def test_no_limit_asks_for_more_draws_than_there_can_be() -> None:
    assert enough_draws(1.0 - 1e-15) == LARGEST
