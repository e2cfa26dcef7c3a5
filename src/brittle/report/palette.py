"""The colours and marks of the scores, the same on the whole page."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from brittle.store.columns import Column

CLAIMED = (
    "#1c2530", "#0072b2", "#d55e00", "#cc8300", "#ca79a8", "#0c8645", "#6b9f72", "#7b95a3", "#049fc6", "#87569a",
    "#9f525e", "#746382", "#636c5b", "#876240", "#867605", "#af3b8f", "#8d8ccf", "#b9402e", "#d27c67", "#ab8b88",
    "#894cbd",
)  # fmt: skip
"""Colours of the places that the scores of the catalogue name, near the palette of Okabe and Ito, which is safe for
colour-blind readers. All but the first have a contrast of 3 or more on the light and on the dark ground of the page;
the first is that of the text, which the page turns with its ground."""

FREE = ("#9c945a", "#5e8b28", "#8f85f2", "#c08745", "#e65384", "#2ea2a0")
"""Colours for scores that name no place."""

PALETTE = (*CLAIMED, *FREE)

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
"""Marks of the places, which tell scores apart without their colours."""


def places(columns: Iterable[Column]) -> dict[str, int]:
    """The place of each score among the colours: the one it names, else the next that no score of the run names.

    Args:
        columns: the scores of a run, in the order in which they take the free places.
    """
    named = {column.score: column.colour for column in columns}
    taken = {place for place in named.values() if place is not None}
    order = (*range(len(CLAIMED), len(PALETTE)), *range(len(CLAIMED)))
    free = itertools.chain((place for place in order if place not in taken), itertools.count(len(PALETTE)))
    return {score: next(free) if place is None else place for score, place in named.items()}


def colour(place: int) -> str:
    """The colour of a place; the palette begins anew where it ends."""
    return PALETTE[place % len(PALETTE)]


def shape(place: int) -> str:
    """The mark of a place."""
    return SHAPES[place % len(SHAPES)]
