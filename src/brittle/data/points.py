"""What every reader turns its files into: points, read in batches, each with an id of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

import torch
from torch import Tensor

from brittle.data.files import changed_error
from brittle.data.images import Failure, thumbnails
from brittle.errors import DataError, ParameterError
from brittle.estimate import Status
from brittle.model.bounds import BoundsLike
from brittle.model.inputs import ExtraInputs


@dataclass(frozen=True)
class Batch:
    """Some points, in the order of the data.

    Attributes:
        rows: position of each point in the data, `[B]`.
        ids: id of each point, `[B]`; unique in the data, and the key of its noise.
        names: what the source calls each point (a path, say), `[B]`, or None.
        labels: class index of each point, `[B]`, or None where the data carry no labels.
        inputs: `[B, *shape]`, in the declared units; zeros where `status` carries no number.
        status: how reading each point ended, `[B]`.
        detail: why reading failed, where it did, `[B]`.
        bounds: smallest and largest value of an input, for the thumbnails.
        turned: whether the EXIF data of each point's image say that it is turned or mirrored, `[B]`; None where they
            are not looked at.
        targets: of each point the numbers that are right, `[B, R]`, float64, where it has several labels (1 holds, 0
            does not) or a number is predicted; None elsewhere.
        extra_inputs: other tensors of the points, and which coordinates of the inputs vary, a row each; None where
            there are neither.
    """

    rows: tuple[int, ...]
    ids: tuple[str, ...]
    names: tuple[str, ...] | None
    labels: tuple[int, ...] | None
    inputs: Tensor
    status: tuple[Status, ...]
    detail: tuple[str | None, ...]
    bounds: BoundsLike
    turned: tuple[bool, ...] | None = None
    targets: Tensor | None = None
    extra_inputs: ExtraInputs | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def images(self) -> tuple[bytes | None, ...] | None:
        """For each point PNG bytes of a thumbnail, `[B]`, drawn when they are first asked for.

        None for a point that could not be read, and for all where inputs are no images.
        """
        drawn = thumbnails(self.inputs, self.bounds)
        return drawn and tuple(png if one is Status.OK else None for png, one in zip(drawn, self.status, strict=True))


@runtime_checkable
class Points(Protocol):
    """Data that can be scored."""

    @property
    def labels(self) -> Sequence[int] | None:
        """Class index of every point, or None where the data carry no labels."""
        ...

    @property
    def class_names(self) -> Sequence[str] | None:
        """Names of the classes in the order of their index, or None."""
        ...

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the points come from: format, path, split, sha256, number of points; JSON values only."""
        ...

    def __len__(self) -> int: ...

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The points of the rows `start` up to `stop` (all others) in their order, `size` at a time."""
        ...


class InputChunk(NamedTuple):
    """Some inputs, as they are read.

    Attributes:
        inputs: `[B, *shape]`.
        failures: why those at some positions could not be read.
        turned: positions of the images whose EXIF data say that they are turned or mirrored; None where they are not
            looked at.
        extra_inputs: those that are made with the inputs; None leaves them to the points.
    """

    inputs: Tensor
    failures: Mapping[int, Failure] = MappingProxyType({})
    turned: frozenset[int] | None = None
    extra_inputs: ExtraInputs | None = None


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
        source: where the points come from.
        labels: class index of each point, `[N]`, or None.
        names: what the source calls each point, `[N]`, or None.
        class_names: names of the classes, or None.
        targets: the numbers that are right for each point, `[N, R]`, or None.
        extra_inputs: other tensors of the points, and which coordinates of the inputs vary, a row each; or None.
    """

    ids: Sequence[str]
    read: Callable[[int, int], Iterator[InputChunk]] = field(repr=False)
    bounds: BoundsLike
    source: dict[str, Any]
    labels: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    targets: Tensor | None = None
    extra_inputs: ExtraInputs | None = None

    def __post_init__(self) -> None:
        if not len(self.ids):
            raise DataError("empty_dataset", f"{self._path} holds no points; expected at least 1")
        if not isinstance(self.ids, RowIds):
            self._check_ids()

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the points come from, and how many they are."""
        targets = {} if self.targets is None else {"targets": self.targets.shape[1]}
        return {**self.source, "points": len(self), **targets}

    def __len__(self) -> int:
        return len(self.ids)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The points of the rows `start` up to `stop` (all others) in their order, `size` at a time."""
        if size < 1:
            raise ParameterError(f"the batch size must be at least 1; found {size}")
        end = len(self) if stop is None else min(stop, len(self))
        if start >= end:
            return
        for chunk in self.read(size, start):
            kept = min(len(chunk.inputs), end - start)
            yield self._batch(range(start, start + kept), chunk)
            start += kept
            if start == end:
                return
        raise changed_error(self._path, f"{start} points were read, {len(self)} were there before")

    @property
    def _path(self) -> str:
        return self.source.get("path") or "the data"

    def _batch(self, rows: range, chunk: InputChunk) -> Batch:
        """The first points of a chunk, as many as there are rows."""
        part, count = slice(rows.start, rows.stop), len(rows)
        failures = [chunk.failures.get(position) for position in range(count)]
        if chunk.extra_inputs is not None:
            extra = chunk.extra_inputs.only(torch.arange(count))
        else:
            extra = self.extra_inputs and self.extra_inputs.only(torch.arange(rows.start, rows.stop))
        return Batch(
            rows=tuple(rows),
            ids=tuple(self.ids[part]),
            names=None if self.names is None else self.names[part],
            labels=None if self.labels is None else self.labels[part],
            inputs=chunk.inputs[:count],
            status=tuple(Status.OK if one is None else one.status for one in failures),
            detail=tuple(
                None if one is None else f"row {row}{self._name_in_brackets(row)}: {one.reason}"
                for row, one in zip(rows, failures, strict=True)
            ),
            bounds=self.bounds,
            turned=None if chunk.turned is None else tuple(position in chunk.turned for position in range(count)),
            targets=None if self.targets is None else self.targets[part],
            extra_inputs=extra,
        )

    def _name_in_brackets(self, row: int) -> str:
        return "" if self.names is None else f" ({self.names[row]})"

    def _check_ids(self) -> None:
        rows: dict[str, int] = {}
        for row, own in enumerate(self.ids):
            if not own.isascii() and any("\ud800" <= character <= "\udfff" for character in own):
                raise DataError(
                    "ids",
                    f"the id of row {row} of {self._path} is {own!r:.80}, which UTF-8 cannot hold; escape it, or leave "
                    "the ids out",
                )
            if rows.setdefault(own, row) != row:
                raise DataError(
                    "ids",
                    f"rows {rows[own]} and {row} of {self._path} share the id {own!r}; an id keys the noise of its "
                    "point, so make the ids unique or leave them out",
                )


@dataclass(frozen=True)
class ChangedPoints:
    """Other points, of which each batch is changed as it is read.

    Attributes:
        points: the points.
    """

    points: Points

    @property
    def labels(self) -> Sequence[int] | None:
        """Class index of every point, or None."""
        return self.points.labels

    @property
    def class_names(self) -> Sequence[str] | None:
        """Names of the classes in the order of their index, or None."""
        return self.points.class_names

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the points come from."""
        return self.points.provenance

    def __len__(self) -> int:
        return len(self.points)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """The points of the rows `start` up to `stop` (all others) in their order, `size` at a time."""
        return map(self.change, self.points.batches(size, start, len(self) if stop is None else min(stop, len(self))))

    def change(self, batch: Batch) -> Batch:
        """A batch as it is given."""
        return batch


@dataclass(frozen=True)
class StillPoints(ChangedPoints):
    """Other points, of which some coordinates do not vary in a run.

    Attributes:
        moves: which coordinates of each vary, `[n]`.
    """

    moves: Tensor

    def change(self, batch: Batch) -> Batch:
        """A batch of which these coordinates alone vary."""
        varies, extra = self.moves.view(batch.inputs.shape[1:]).expand(batch.inputs.shape), batch.extra_inputs
        extra = extra or ExtraInputs()
        varies = varies if extra.varies is None else varies & extra.varies
        return replace(batch, extra_inputs=replace(extra, varies=varies, inputs=batch.inputs))
