"""The colours of the scores: those they name, and free ones for the others."""

from __future__ import annotations

from dataclasses import replace

from helpers.pages import EVERY_CHANGE, EVERY_SCORE
from helpers.tables import make_table

from brittle.report import palette
from brittle.report.palette import CLAIMED, FREE, PALETTE, places
from brittle.scores import CATALOGUE
from brittle.store.columns import Column


def columns(**colours: int | None) -> list[Column]:
    """Columns of scores of these names, each with the place that it names."""
    (known,) = make_table(points=1, scores=("softmax",)).columns
    return [replace(known, record=replace(known.record, score=name, colour=at)) for name, at in colours.items()]


def test_every_score_of_the_catalogue_names_another_colour() -> None:
    named = {name: CATALOGUE[name].colour for name in (*EVERY_SCORE, *EVERY_CHANGE)}
    assert sorted(place for place in named.values() if place is not None) == list(range(len(CLAIMED)))


def test_colours_and_marks_differ() -> None:
    assert len(set(PALETTE)) == len(PALETTE)
    assert len({(palette.colour(place), palette.shape(place)) for place in range(len(PALETTE))}) == len(PALETTE)


def test_a_score_that_names_none_gets_the_next_free_colour() -> None:
    found = places(columns(known=1, mine=None, yours=None))
    assert found == {"known": 1, "mine": len(CLAIMED), "yours": len(CLAIMED) + 1}
    taken = places(columns(known=len(CLAIMED), mine=None))
    assert taken["mine"] == len(CLAIMED) + 1


def test_more_scores_than_colours_all_get_one() -> None:
    names = {f"score{number}": None for number in range(2 * len(PALETTE))}
    found = places(columns(first=0, **names))
    assert len(set(found.values())) == len(found)
    assert [palette.colour(place) for place in list(found.values())[1 : 1 + len(FREE)]] == list(FREE)
    assert all(palette.colour(place) in PALETTE for place in found.values())
