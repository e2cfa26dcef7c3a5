"""The colours and marks of the scores, the same on the whole page."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from brittle.store.columns import Column

CLAIMED = (
    "#1c2530", "#0072b2", "#d55e00", "#e69f00", "#cc79a7", "#009e73", "#7cc6ae", "#8a94a0", "#56b4e9", "#7a6fb0",
    "#b2576f", "#35507a", "#4d9aa5", "#8c6d4f", "#5f6b2f", "#8f3b76", "#c08bb0", "#b5452c", "#d79a86", "#a9a08f",
    "#5b2a86",
)  # fmt: skip
"""Colours of the places that the scores of the catalogue name, after the palette of Okabe and Ito, which is safe for
colour-blind readers."""

FREE = ("#b0a56a", "#3d7d5a", "#6478c8", "#a3762a", "#c9517f", "#46b3a2")
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
