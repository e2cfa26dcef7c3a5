"""Some of the points of any data, chosen by their ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from brittle.data.files import changed_error
from brittle.data.listed import ListedPoints
from brittle.data.outside import DescribedPoints
from brittle.data.points import Batch, Points
from brittle.errors import ParameterError, listed
from brittle.model.aside import Aside

READ_THROUGH = 8
"""Where the next chosen row is no further on than this, those in between are read and left out; otherwise reading
begins anew, which in a Parquet file with groups of 1,000 images costs about as much as to read 10, in a folder nothing.
"""

READ_AT_A_TIME = 256
"""Points that are read at a time where reading them is the only way to their ids."""

SHOWN = 3
"""Ids that a message names."""

_OF_POINTS = tuple(one.name for one in fields(Batch) if one.name != "bounds")
"""What a batch holds of each of its points."""


def choose_points(points: Points, ids: Iterable[str]) -> ChosenPoints:
    """Those of `points` whose ids are given, in the order of the data; an id that is given twice counts once.

    Each keeps its row, id, name and label. The noise of a point is keyed by its id, so its scores are those of a run
    over all points, except as a network rounds differently in another batch.

    Args:
        points: the points of any format.
        ids: some of their ids, as the column `point` of a run holds them: of arrays the row number as text, of a
            folder of images the path below the folder of the classes.

    Raises:
        ParameterError: no id is given, one is no text, or one is not among the points; these are counted and named.
    """
    asked = _checked(ids)
    there = _ids_of(points)
    rows = tuple(row for row, own in enumerate(there) if own in asked)
    found = tuple(there[row] for row in rows)
    known = set(found)
    missing = [own for own in asked if own not in known]
    if missing:
        source = points.provenance.get("path") or "the data"
        like = ", ".join(f"{own!r:.60}" for own in there[:SHOWN])
        raise ParameterError(
            f"{len(missing):,} of {len(asked):,} ids are not in {source}: "
            f"{listed([f'{own!r:.60}' for own in missing], SHOWN)}; its {len(there):,} ids, the column point of a run, "
            f"look like {like}",
        )
    before = points.provenance.get("chosen_from", len(there))
    chosen = {"points": len(rows), "chosen_from": before, "ids_sha256": _digest(found)}
    return ChosenPoints(points, rows, found, {**points.provenance, **chosen})


@dataclass(frozen=True)
class ChosenPoints:
    """Some of other points, in their order.

    Attributes:
        points: the points that they are of.
        rows: which of these, increasing, `[N]`.
        ids: their ids, `[N]`.
        provenance: where they come from, and that they were chosen.
    """

    points: Points
    rows: tuple[int, ...]
    ids: tuple[str, ...]
    provenance: dict[str, Any]

    @property
    def labels(self) -> Sequence[int] | None:
        """Class index of every chosen point, or None."""
        labels = self.points.labels
        return None if labels is None else tuple(labels[row] for row in self.rows)

    @property
    def class_names(self) -> Sequence[str] | None:
        """Names of the classes in the order of their index, or None."""
        return self.points.class_names

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The chosen points `start` up to `stop` (all others) in their order, `size` at a time.

        The two count chosen points; the `rows` of a batch are those of the data.

        Raises:
            ParameterError: `size` is below 1.
            DataError: the data changed since they were opened, or cannot be read.
        """
        if size < 1:
            raise ParameterError(f"the batch size must be at least 1; found {size}")
        end = len(self) if stop is None else min(stop, len(self))
        held: Batch | None = None
        for part in self._parts(size, start, end):
            held = part if held is None else _joined(held, part)
            if len(held) >= size:
                yield _taken(held, range(size))
                held = _taken(held, range(size, len(held))) if len(held) > size else None
        if held is not None:
            yield held

    def _parts(self, size: int, start: int, end: int) -> Iterator[Batch]:
        """What batches of the data hold of the chosen points `start` up to `end`: never nothing, `size` at most."""
        place = start
        for first, last in _stretches(self.rows[start:end]):
            row = first
            for batch in self.points.batches(_even(last + 1 - first, size), first, last + 1):
                wanted = place
                while wanted < end and self.rows[wanted] < row + len(batch):
                    wanted += 1
                if wanted > place:
                    yield self._checked_part(batch, row, place, wanted)
                row, place = row + len(batch), wanted
            if row <= last:
                raise changed_error(self._path, f"its points end before row {row}")

    def _checked_part(self, batch: Batch, first: int, start: int, end: int) -> Batch:
        """The chosen points `start` up to `end` out of a batch that begins at row `first`.

        Raises:
            DataError: one has another id than when the data were opened.
        """
        part = _taken(batch, [row - first for row in self.rows[start:end]])
        for row, own, now in zip(self.rows[start:end], self.ids[start:end], part.ids, strict=True):
            if own != now:
                raise changed_error(self._path, f"row {row} has the id {now!r:.60} instead of {own!r:.60}")
        return part

    @property
    def _path(self) -> str:
        return self.provenance.get("path") or "the data"


def _checked(ids: Iterable[str]) -> dict[str, None]:
    """The ids, each once, in the order in which they are given.

    Raises:
        ParameterError: there are none, or one is no text.
    """
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise ParameterError(f"expected a list of ids, each a text; found {ids!r:.60}")
    asked = tuple(ids)
    odd = [own for own in asked if not isinstance(own, str)]
    if odd:
        raise ParameterError(f"an id is a text, such as '17' for row 17 of an array; found {odd[0]!r:.60}")
    if not asked:
        raise ParameterError("no id was given; give at least one, or leave the ids out to take all points")
    return dict.fromkeys(asked)


def _ids_of(points: Points) -> Sequence[str]:
    """The ids of all points; where nothing but their batches holds them, all are read for it."""
    if isinstance(points, ListedPoints | ChosenPoints):
        return points.ids
    if isinstance(points, DescribedPoints) and isinstance(points.points, ListedPoints):
        return points.points.ids[: len(points)]
    return tuple(own for batch in points.batches(READ_AT_A_TIME) for own in batch.ids)


def _digest(ids: Sequence[str]) -> str:
    """The sha256 of ids in the order of the data, as a list in JSON."""
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


def _stretches(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last row of each stretch that is read in one go."""
    first = 0
    for place, row in enumerate(rows):
        if place + 1 == len(rows) or rows[place + 1] - row > READ_THROUGH:
            yield rows[first], row
            first = place + 1


def _even(count: int, most: int) -> int:
    """The size of `most` or less in whose batches so many rows come without a short one: some read a last one whole."""
    return -(-count // -(-count // most))


def _taken(batch: Batch, positions: Sequence[int]) -> Batch:
    """The points of a batch at these positions."""

    def taken(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value[torch.tensor(tuple(positions), device=value.device)]
        if isinstance(value, Aside):
            return value.only(torch.tensor(tuple(positions)))
        return None if value is None else tuple(value[position] for position in positions)

    return replace(batch, **{name: taken(getattr(batch, name)) for name in _OF_POINTS})


def _joined(one: Batch, other: Batch) -> Batch:
    """The points of two batches of the same data."""

    def joined(first: Any, second: Any) -> Any:
        if isinstance(first, Tensor):
            return torch.cat((first, second))
        if isinstance(first, Aside):
            return Aside.joined(first, second)
        return None if first is None or second is None else (*first, *second)

    return replace(one, **{name: joined(getattr(one, name), getattr(other, name)) for name in _OF_POINTS})
