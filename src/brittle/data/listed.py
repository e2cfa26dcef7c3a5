"""Points that are all known by their ids, and whose inputs are read in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor

from brittle.data.files import changed_error
from brittle.data.images import Failure
from brittle.data.points import Batch
from brittle.errors import DataError, ParameterError
from brittle.estimate import Status
from brittle.model.aside import Aside
from brittle.model.bounds import BoundsLike


class InputChunk(NamedTuple):
    """Some inputs, as they are read.

    Attributes:
        inputs: `[B, *shape]`.
        failures: why those at some positions could not be read.
        turned: positions of the images whose EXIF data say that they are turned or mirrored; None where they are not
            looked at.
        aside: what these inputs have beside them, where it is made with them; None leaves it to the points.
    """

    inputs: Tensor
    failures: Mapping[int, Failure] = MappingProxyType({})
    turned: frozenset[int] | None = None
    aside: Aside | None = None


@dataclass(frozen=True)
class RowIds(Sequence[str]):
    """The ids of points that have none of their own: their positions, made when they are asked for.

    Attributes:
        points: how many points there are.
    """

    points: int

    def __len__(self) -> int:
        return self.points

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...

    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        rows = range(self.points)[place]
        return tuple(map(str, rows)) if isinstance(rows, range) else str(rows)


@dataclass(frozen=True)
class ListedPoints:
    """Points that are all known by id, and whose inputs are read in chunks.

    Attributes:
        ids: id of each point, `[N]`.
        read: called with a number and a row, gives the inputs from that row on, so many at a time.
        bounds: smallest and largest value of an input, for the thumbnails.
        provenance: where the points come from.
        labels: class index of each point, `[N]`, or None.
        names: what the source calls each point, `[N]`, or None.
        class_names: names of the classes, or None.
        targets: the numbers that are right for each point, `[N, R]`, or None.
        aside: other tensors of the points, and which coordinates of the inputs vary, a row each; or None.

    Raises:
        DataError: there are no points, two share an id, or the labels are not as many as the points.
    """

    ids: tuple[str, ...] | RowIds
    read: Callable[[int, int], Iterator[InputChunk]] = field(repr=False)
    bounds: BoundsLike
    provenance: dict[str, Any]
    labels: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    targets: Tensor | None = None
    aside: Aside | None = None

    def __post_init__(self) -> None:
        source = self.provenance["path"] or "the data"
        if not self.ids:
            raise DataError("empty_dataset", f"{source} holds no points; expected at least 1")
        if isinstance(self.ids, RowIds):
            return
        if (odd := next((row for row, own in enumerate(self.ids) if not _is_text(own)), None)) is not None:
            raise DataError(
                "ids",
                f"the id of row {odd} of {source} is {self.ids[odd]!r:.80}, which UTF-8 cannot hold; escape it, or "
                f"leave the ids out",
            )
        if len(set(self.ids)) < len(self.ids):
            first, second = _equal_pair(self.ids)
            raise DataError(
                "ids",
                f"rows {first} and {second} of {source} share the id {self.ids[first]!r}; an id keys the noise of its "
                f"point, so make the ids unique or leave them out",
            )

    def __len__(self) -> int:
        return len(self.ids)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The points of the rows `start` up to `stop` (all others) in their order, `size` at a time.

        Raises:
            ParameterError: `size` is below 1.
            DataError: the files changed since they were opened, or images differ in size.
        """
        if size < 1:
            raise ParameterError(f"the batch size must be at least 1; found {size}")
        end = len(self) if stop is None else min(stop, len(self))
        for chunk in self.read(size, start):
            kept = min(len(chunk.inputs), end - start)
            yield self._batch(range(start, start + kept), chunk)
            start += kept
            if stop is not None and start == end:
                return
        if start != end:
            raise changed_error(self.provenance["path"], f"{start} points were read, {len(self)} were there before")

    def _batch(self, rows: range, chunk: InputChunk) -> Batch:
        """The first points of a chunk, as many as there are rows."""
        part, inputs, turned = slice(rows.start, rows.stop), chunk.inputs[: len(rows)], chunk.turned
        found = [chunk.failures.get(position) for position in range(len(rows))]
        return Batch(
            rows=tuple(rows),
            ids=self.ids[part],
            names=None if self.names is None else self.names[part],
            labels=None if self.labels is None else self.labels[part],
            inputs=inputs,
            status=tuple(Status.OK if failure is None else failure.status for failure in found),
            detail=tuple(
                None if failure is None else f"row {row}{self._name_in_brackets(row)}: {failure.reason}"
                for row, failure in zip(rows, found, strict=True)
            ),
            bounds=self.bounds,
            turned=None if turned is None else tuple(position in turned for position in range(len(rows))),
            targets=None if self.targets is None else self.targets[part],
            aside=self._beside(rows, chunk),
        )

    def _beside(self, rows: range, chunk: InputChunk) -> Aside | None:
        """What the points of these rows have beside their inputs."""
        if chunk.aside is not None:
            return chunk.aside.only(torch.arange(len(rows)))
        return None if self.aside is None else self.aside.only(torch.arange(rows.start, rows.stop))

    def _name_in_brackets(self, row: int) -> str:
        return "" if self.names is None else f" ({self.names[row]})"


def _is_text(own: str) -> bool:
    """Whether a string can be stored as UTF-8."""
    return own.isascii() or not any("\ud800" <= character <= "\udfff" for character in own)


def _equal_pair(ids: Sequence[str]) -> tuple[int, int]:
    """Positions of the first two ids that are equal."""
    where: dict[str, int] = {}
    for row, own in enumerate(ids):
        if own in where:
            return where[own], row
        where[own] = row
    raise ValueError("all ids are distinct")
