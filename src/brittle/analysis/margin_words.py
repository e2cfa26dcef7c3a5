"""How near the nearest other predictions of a run are, in words for each of its input margins."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from brittle.analysis.text import by_number, number, share_of
from brittle.analysis.worst_case import margin_columns
from brittle.estimate import short_labels
from brittle.norms import COUNT
from brittle.store.columns import Column, Scored

SHARES = {"half": 0.5, "one in ten": 0.1}
"""The shares of the points of which a distance is said, in words."""


def margin_sentences(table: Scored) -> tuple[str, ...]:
    """For each input margin of a run, within which distance another prediction was found of half of the points and of
    one in ten; and, where certificates were asked for, within which half of them have none.

    The distance of a share `s` of `N` points is the `ceil(s N)`-th smallest, so that at least this share is as near.
    The certified one is the `ceil(N / 2)`-th smallest radius, so that at least half are certified up to it. Points
    without a number are left out.

    Args:
        table: a run.

    Returns:
        a text for each margin, in the order of the record of the run.
    """
    columns = margin_columns(table)
    names = short_labels(column.label for column in columns)
    return tuple(_sentences(column, names[column.label]) for column in columns if column.value.notna().any())


def smallest(values: NDArray[np.float64], share: float) -> float:
    """The `ceil(share * N)`-th smallest of `values`, `[N]`.

    Example:
        >>> smallest(np.array([4.0, 1.0, 3.0, 2.0]), 0.5)
        2.0
    """
    return float(np.sort(values)[math.ceil(share * len(values)) - 1])


def _sentences(column: Column, name: str) -> str:
    known = column.value.notna().to_numpy()
    distances = column.value.to_numpy(dtype=np.float64)[known]
    nearest = {words: smallest(distances, share) for words, share in SHARES.items()}
    within = [f"within {_length(column, one)} of {words}" for words, one in nearest.items() if math.isfinite(one)]
    said = [f"{name}: an input with another prediction was found {' and '.join(within)} of the points."]
    if not within:
        said = [f"{name}: an input with another prediction was found for fewer than one in ten points."]
    if (missed := int(np.isinf(distances).sum())) > 0:
        said.append(f"None was found for {share_of(missed, len(distances), 'point')}.")
    radii = column.low.to_numpy(dtype=np.float64)[known]
    if column.parameters.get("certify") or (radii > 0.0).any():
        radius = smallest(radii, SHARES["half"])
        said.append(
            f"Certified: none within {number(radius)} of half of the points."
            if radius > 0.0
            else "Fewer than half of the points have a certificate."
        )
    return " ".join(said)


def _length(column: Column, distance: float) -> str:
    """A distance with what it counts."""
    unit = by_number(int(distance), " changed value", " changed values")
    return f"{number(distance)}{unit if column.parameters.get('norm') == COUNT else ''}"
