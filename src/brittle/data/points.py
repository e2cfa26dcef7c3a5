"""What every reader turns its files into: points, read in batches, each with an id of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from brittle.data.files import changed_error
from brittle.data.images import Failure, thumbnails
from brittle.errors import DataError, ParameterError
from brittle.estimate import Status
from brittle.model.aside import Aside
from brittle.model.bounds import Bounds, BoundsLike

_TABLE_ADVICE = (
    "take --bounds none (bounds='none') where features have no range of their own, or declare one that holds all "
    "features of all rows with --bounds LO HI (bounds=(LO, HI)); noise is of one size in all features: bring them to "
    "one scale first, or take --noise per-feature --sigma 0.1 (brittle.noise.PerFeature)"
)


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
    extra_inputs: Aside | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def images(self) -> tuple[bytes | None, ...] | None:
        """For each point PNG bytes of a thumbnail, `[B]`, drawn when they are first asked for.

        None for a point that could not be read, and for all where inputs are no images.
        """
        drawn = thumbnails(self.inputs, self.bounds)
        return drawn and tuple(png if one is Status.OK else None for png, one in zip(drawn, self.status, strict=True))

    def take(self, positions: Sequence[int]) -> Batch:
        """The points at these positions."""
        places = torch.tensor(tuple(positions), dtype=torch.long)

        def taken(value: Any) -> Any:
            if isinstance(value, Tensor):
                return value[places.to(value.device)]
            if isinstance(value, Aside):
                return value.only(places)
            return None if value is None else tuple(value[position] for position in positions)

        return replace(self, **{name: taken(getattr(self, name)) for name in _OF_POINTS})

    def joined(self, other: Batch) -> Batch:
        """These points and those of another batch of the same data."""

        def both(one: Any, two: Any) -> Any:
            if isinstance(one, Tensor):
                return torch.cat((one, two))
            if isinstance(one, Aside):
                return Aside.joined(one, two)
            return None if one is None or two is None else (*one, *two)

        return replace(self, **{name: both(getattr(self, name), getattr(other, name)) for name in _OF_POINTS})


_OF_POINTS = tuple(one.name for one in fields(Batch) if one.name != "bounds")
"""What a batch holds of each of its points."""


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
    extra_inputs: Aside | None = None


@dataclass(frozen=True)
class RowIds(Sequence[str]):
    """The ids of points that have none of their own: their positions, made when they are asked for.

    Attributes:
        points: how many points there are.
    """

    points: int

    def __len__(self) -> int:
        return self.points

    def __getitem__(self, place: Any) -> Any:
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
    extra_inputs: Aside | None = None

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
        extra = extra or Aside()
        varies = varies if extra.varies is None else varies & extra.varies
        return replace(batch, extra_inputs=replace(extra, varies=varies, inputs=batch.inputs))


def readable(batch: Batch) -> Tensor:
    """Whether each input was read and holds no NaN or infinite value, `[B]`."""
    read = torch.tensor([status.has_value for status in batch.status], dtype=torch.bool, device=batch.inputs.device)
    return read & batch.inputs.flatten(1).isfinite().all(dim=1)


def usable(batch: Batch) -> Tensor:
    """The inputs that were read and hold no NaN or infinite value, `[V, *shape]`."""
    return batch.inputs[readable(batch)]


def check_values(batch: Batch, bounds: BoundsLike) -> None:
    """Raise where an input lies outside the declared bounds."""
    inputs = usable(batch)
    if inputs.numel() == 0:
        return
    bounds = Bounds.of(bounds)
    bounds.check_shape(inputs.shape[1:])
    outside = ~bounds.contains(inputs)
    if not bool(outside.any()):
        return
    place = int(outside.nonzero()[0])
    row = int(torch.tensor(batch.rows)[readable(batch).cpu()][place])
    found = f"in {int(outside.sum())} of {len(inputs)} rows, the first of them row {row}"
    if bounds.pair is None:
        least, most = (torch.as_tensor(end).to(inputs).expand(inputs.shape[1:]) for end in bounds.allowed(inputs))
        feature = int(((inputs[place] < least) | (inputs[place] > most)).flatten().nonzero()[0])
        low, high = (
            float(torch.as_tensor(end).expand(inputs.shape[1:]).flatten()[feature])
            for end in (bounds.lower, bounds.upper)
        )
        raise DataError(
            "value_range",
            f"values outside the bounds of their feature {found}, which holds "
            f"{float(inputs[place].flatten()[feature]):.4g} at the feature in place {feature}, outside [{low:g}, "
            f"{high:g}]; give bounds that hold all rows, or none (--bounds none, bounds='none')",
        )
    low, high = bounds.pair
    smallest, largest = float(inputs.min()), float(inputs.max())
    table = batch.inputs.dim() == 2 and not bool((inputs == inputs.round()).all())
    advice = _TABLE_ADVICE if table else _advice(smallest, largest, low, high)
    raise DataError(
        "value_range", f"values from {smallest:.4g} to {largest:.4g}, outside [{low:g}, {high:g}] {found}; {advice}"
    )


def _advice(smallest: float, largest: float, low: float, high: float) -> str:
    if smallest >= 0 and 16 < largest <= 255 and (low, high) == (0.0, 1.0):
        return "use --bounds 0 255 (bounds=(0, 255)) or divide by 255"
    if smallest < low and high - low <= 2:
        return "the data look normalised; give pixels and declare --mean and --std (mean=, std=) instead"
    return "declare the range with --bounds LO HI (bounds=)"
