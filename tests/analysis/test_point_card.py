"""Card of a point: all that a run holds of it, as in the long table."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.known_groups import BREAK, HOLD, OPEN, made
from helpers.tables import make_table

from brittle.analysis.point_card import find_point, format_point_card, point_card
from brittle.errors import DataError

TABLE = make_table(points=20, scores=("monte_carlo", "logit_margin", "input_margin"), broken=1, sigmas=(0.1,))
IDS = TABLE.points["point"].to_pylist()


@pytest.mark.parametrize("place", [0, 1, 7])
def test_a_card_holds_the_rows_of_its_point(place: int) -> None:
    rows = [row for row in TABLE.long().to_dict("records") if row["point"] == IDS[place]]
    card = point_card(TABLE, IDS[place])
    assert len(card) == len(rows) == len(TABLE.columns)
    for entry, row in zip(card.to_dict("records"), rows, strict=True):
        flips = row["score"] == "monte_carlo"
        expected = [row["value"], row["low"], row["high"]]
        if place == 0:
            expected = [np.nan] * 3
        elif flips:
            expected = [1 - row["value"], 1 - row["high"], 1 - row["low"]]
        assert np.allclose([entry["value"], entry["low"], entry["high"]], expected, equal_nan=True)
        assert entry["status"] == row["status"]


def test_the_first_rank_is_the_least_safe_point() -> None:
    column = TABLE["logit_margin"]
    weakest = str(column.value.idxmin())
    card = point_card(TABLE, weakest).set_index("score")
    assert tuple(card.loc["logit_margin", ["rank", "last", "of"]]) == (1, 1, 19)


def test_equal_points_share_their_places() -> None:
    column = [entry for entry in TABLE.columns if entry.score == "monte_carlo"][-1]
    value = column.value.dropna()
    point = str(value.duplicated(keep=False).idxmax())
    entry = point_card(TABLE, point).set_index("score").loc[column.label]
    assert (entry["rank"], entry["last"]) == ((value > value[point]).sum() + 1, (value >= value[point]).sum())
    assert entry["last"] > entry["rank"]
    assert f" {entry['rank']:.0f} to {entry['last']:.0f} of {entry['of']:.0f} " in format_point_card(TABLE, point)


@pytest.mark.parametrize("key", [IDS[3], 3, "3", "test/00003.png"])
def test_a_point_is_found_by_id_row_or_name(key: str | int) -> None:
    assert find_point(TABLE, key) == IDS[3]


def test_an_absent_point_is_refused() -> None:
    with pytest.raises(DataError, match="no point of the run has the id, row or name 'nobody'"):
        find_point(TABLE, "nobody")


def test_the_card_has_the_state_of_the_table() -> None:
    """Points of every state, and a point without a number."""
    table = made([HOLD, OPEN, BREAK, None])
    sentences = [
        format_point_card(table, id_).splitlines()[1].partition(", by ")[0] for id_ in table.points["point"].to_pylist()
    ]
    assert sentences == [
        "It holds: kept with probability 0.9 or more",
        "It is undecided whether it is kept with probability 0.9 or more",
        "It breaks: kept with probability below 0.9",
        "It has no number",
    ]
