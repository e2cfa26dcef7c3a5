"""Which predictions hold, by class."""

from __future__ import annotations

import pytest
import torch
from helpers.pages import open_contents, result_of
from helpers.problems import inputs, small_classifier
from helpers.tables import make_table

import brittle
from brittle.analysis import decide
from brittle.report.chapters.decisions import DecisionsChapter
from brittle.scores import Moments, MonteCarlo


@pytest.fixture(scope="module")
def table() -> brittle.Table:
    data = (inputs(40), torch.arange(40) % 4)
    return brittle.score(small_classifier(), data, [Moments(0.5, draws=20)], until="decided", limit=0.9, most_draws=200)


def test_every_point_is_drawn_once(table: brittle.Table) -> None:
    result = result_of(DecisionsChapter(), table)
    states = decide(table)["state"].tolist()
    for state in ("holds", "breaks", "undecided"):
        assert result.frame.loc[result.frame["state"] == state, "points"].sum() == states.count(state)
    assert result.frame["points"].sum() == 40
    (number,) = result.numbers
    assert number.value == f"{states.count('holds')} of 40"
    holds = result.frame[result.frame["state"] == "holds"]
    shares = dict(zip(holds["order"], holds["points"], strict=True))
    assert [shares[place] for place in range(4)] == sorted(shares.values())  # ten points to a class


def test_columns_that_were_asked_the_same_are_told_apart() -> None:
    scores = [MonteCarlo(0.5, draws=draws, limit=0.9, precision=wide) for draws, wide in ((20, None), (40, 0.6))]
    result = result_of(DecisionsChapter(), brittle.score(small_classifier(), inputs(10), scores))
    points = result.frame.to_dict("records")
    questions = {str(row["setting"]) for row in points}
    assert [sum(row["points"] for row in points if row["setting"] == one) for one in questions] == [10, 10]
    assert len({number.title for number in result.numbers}) == len({row[0] for row in result.grid.rows}) == 2
    assert "or an interval as narrow as was asked for" in result.undecided


def test_a_run_that_was_not_asked_has_no_such_chapter() -> None:
    assert DecisionsChapter().summarize(open_contents(make_table(points=10))) is None
