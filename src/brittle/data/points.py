"""Points, the result of every reader: read in batches, each with an id of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from brittle.data.files import changed_error
from brittle.data.images import UnreadableImage, thumbnails
from brittle.errors import DataError, ParameterError
from brittle.estimate import Status
from brittle.model.bounds import Bounds, BoundsLike
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
        status, detail: how reading each point ended, and why where it failed, `[B]`.
        bounds: smallest and largest value of an input, for the thumbnails.
        targets: what is right where there are several labels (1 or 0) or numbers, `[B, R]`, float64; else None.
        extra_inputs: other tensors of the points, and which coordinates of the inputs vary, a row each; or None.
    """

    rows: tuple[int, ...]
    ids: tuple[str, ...]
    names: tuple[str, ...] | None
    labels: tuple[int, ...] | None
    inputs: Tensor
    status: tuple[Status, ...]
    detail: tuple[str | None, ...]
    bounds: BoundsLike
    targets: Tensor | None = None
    extra_inputs: ExtraInputs | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def images(self) -> tuple[bytes | None, ...] | None:
        """Return PNG bytes of a thumbnail for each point, `[B]`, drawn at the first call.

        None for a point that could not be read, and for all where inputs are no images.
        """
        drawn = thumbnails(self.inputs, self.bounds)
        return drawn and tuple(png if code is Status.OK else None for png, code in zip(drawn, self.status, strict=True))

    def pieces(self, size: int) -> Iterator[Batch]:
        """Yield the points in order, so many at a time."""
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            values = {member.name: getattr(self, member.name) for member in fields(Batch) if member.name != "bounds"}
            extra = values.pop("extra_inputs")
            parts = {name: None if value is None else value[rows] for name, value in values.items()}
            positions = torch.arange(len(self))[rows]
            yield replace(self, **parts, extra_inputs=None if extra is None else extra.only(positions))

    @staticmethod
    def joined(batches: Sequence[Batch]) -> Batch:
        """Return the points of several batches of the same data."""

        def together(values: list[Any]) -> Any:
            if any(value is None for value in values):
                return None
            if isinstance(values[0], Tensor):
                return torch.cat(values)
            return reduce(ExtraInputs.joined, values) if isinstance(values[0], ExtraInputs) else sum(values, ())

        if len(batches) == 1:
            return batches[0]
        names = [member.name for member in fields(Batch) if member.name != "bounds"]
        return replace(batches[0], **{name: together([getattr(batch, name) for batch in batches]) for name in names})


@runtime_checkable
class Points(Protocol):
    """Data that can be scored."""

    @property
    def labels(self) -> Sequence[int] | None:
        """Class index of every point, or None where the data carry no labels."""

    @property
    def class_names(self) -> Sequence[str] | None:
        """Names of the classes in the order of their index, or None."""

    @property
    def provenance(self) -> dict[str, Any]:
        """Origin of the points: format, path, split, sha256, number of points; JSON values only."""
        ...

    def __len__(self) -> int: ...

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Return the points of the rows `start` up to `stop` (all others) in their order, `size` at a time."""
        ...


class InputRows(NamedTuple):
    """The inputs of consecutive points, `[B, *shape]`; faults of unreadable ones by position; extra inputs by row."""

    inputs: Tensor
    failures: Mapping[int, UnreadableImage] = {}
    extra_inputs: ExtraInputs | None = None


Read = Callable[[int, int], InputRows]  # called with two rows, gives the inputs from the first up to the second


@dataclass(frozen=True)
class ListedPoints:
    """Points all known by id, whose inputs `read` gives when they are asked for; other fields are as in `Batch`."""

    ids: Sequence[str]
    read: Read = field(repr=False)
    bounds: BoundsLike
    source: dict[str, Any]
    labels: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    targets: Tensor | None = None

    def __post_init__(self) -> None:
        source = self.source.get("path") or "the data"
        if not self.ids:
            raise DataError("empty_dataset", f"{source} holds no points; expected at least 1")
        rows: dict[str, int] = {}
        for row, id_ in enumerate(() if isinstance(self.ids, RowIds) else self.ids):
            if rows.setdefault(id_, row) != row:
                raise DataError(
                    "ids",
                    f"rows {rows[id_]} and {row} of {source} share the id {id_!r}, which keys the noise; make the ids "
                    "unique, or leave them out",
                )
            if not id_.isascii() and any("\ud800" <= character <= "\udfff" for character in id_):
                raise DataError("ids", f"the id of row {row} of {source} is {id_!r:.80}, which is no text; escape it")

    @property
    def provenance(self) -> dict[str, Any]:
        """Origin of the points, and their number."""
        targets = {} if self.targets is None else {"targets": self.targets.shape[1]}
        return self.source | {"points": len(self)} | targets

    def __len__(self) -> int:
        return len(self.ids)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the points of the rows `start` up to `stop` (all others) in their order, `size` at a time."""
        for rows in parts_of(range(len(self))[start:stop], size):
            yield self._batch(rows)

    def _batch(self, rows: range) -> Batch:
        part, read = slice(rows.start, rows.stop), self.read(rows.start, rows.stop)
        columns = {"names": self.names, "labels": self.labels, "targets": self.targets}
        answers: Any = {name: None if values is None else values[part] for name, values in columns.items()}
        status, detail = [Status.OK] * len(rows), list[str | None]([None] * len(rows))
        for place, failure in read.failures.items():
            called = "" if self.names is None else f" ({self.names[rows[place]]})"
            status[place], detail[place] = failure.status, f"row {rows[place]}{called}: {failure.reason}"
        return Batch(
            rows=tuple(rows), ids=tuple(self.ids[part]), inputs=read.inputs, status=tuple(status), detail=tuple(detail),
            bounds=self.bounds, extra_inputs=read.extra_inputs, **answers,
        )  # fmt: skip


def parts_of(rows: Any, size: int) -> Iterator[Any]:
    if size < 1:
        raise ParameterError(f"the batch size must be at least 1; found {size}")
    return (rows[start : start + size] for start in range(0, len(rows), size))


class RowIds(Sequence[str]):
    """The ids of so many points that have none of their own: their positions, which are not listed."""

    def __init__(self, count: int) -> None:
        self._rows = range(count)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, at: Any) -> Any:
        rows = self._rows[at]
        return str(rows) if isinstance(rows, int) else tuple(map(str, rows))

    def __repr__(self) -> str:
        return f"RowIds({len(self)})"


@dataclass(frozen=True)
class SomePoints:
    """Some `rows` of other points in their order, with facts replaced; `ids` are those that chose them.
    `moves`, `[n]`, are the coordinates that vary in a run. `takes` tells which inputs with missing values the model
    takes, `[B]`: these values are filled, do not vary, and are NaN in `extra_inputs`."""

    points: Points
    rows: Sequence[int]
    labels: Sequence[int] | None
    class_names: Sequence[str] | None
    provenance: dict[str, Any]
    ids: tuple[str, ...] | None = None
    is_named: bool = False
    moves: Tensor | None = None
    takes: Callable[[Tensor], Tensor] | None = None

    @classmethod
    def of(cls, points: Points, rows: Sequence[int] | None = None, **attributes: Any) -> SomePoints:
        """`points`, or these rows of them, with other attributes in the place of theirs."""
        rows = range(len(points)) if rows is None else rows
        labels = None if points.labels is None else tuple(points.labels[row] for row in rows)
        same = {"class_names": points.class_names, "provenance": points.provenance, "labels": labels}
        return cls(points, rows, **{**same, "is_named": getattr(points, "is_named", False), **attributes})

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield these points from `start` up to `stop`, `size` at a time; its `rows` are those of the data."""
        for places in parts_of(range(len(self))[start:stop], size):
            part = slice(places.start, places.stop)
            runs = [self.points.batches(len(run), run.start, run.stop) for run in _runs(self.rows[part])]
            batch = self._checked([batch for run in runs for batch in run], part)
            labels = None if self.labels is None else tuple(self.labels[part])
            yield self._filled(replace(batch, labels=labels, extra_inputs=self._still(batch)))

    def _checked(self, batches: list[Batch], part: slice) -> Batch:
        """Join `batches`, which must hold all of a part and the chosen points."""
        ids = [id_ for batch in batches for id_ in batch.ids]
        expected = ids if self.ids is None else self.ids[part]
        for place, row in enumerate(self.rows[part]):
            if place >= len(ids) or ids[place] != expected[place]:
                source = self.provenance.get("path") or "the data"
                raise changed_error(source, f"row {row} is gone, or has another id than before")
        return Batch.joined(batches)

    def _still(self, batch: Batch) -> ExtraInputs | None:
        if self.moves is None:
            return batch.extra_inputs
        extra, shape = batch.extra_inputs or ExtraInputs(), batch.inputs.shape
        varies = self.moves.view(shape[1:]).expand(shape)
        inputs = batch.inputs if extra.inputs is None else extra.inputs
        return replace(extra, varies=varies if extra.varies is None else varies & extra.varies, inputs=inputs)

    def _filled(self, batch: Batch) -> Batch:
        missing = batch.inputs.isnan()
        is_filled = missing.flatten(1).any(dim=1) & ~batch.inputs.isinf().flatten(1).any(dim=1)
        if self.takes is None or not bool(is_filled.any()):
            return batch
        is_filled[is_filled.clone()] = self.takes(batch.inputs[is_filled]).to(is_filled.device)
        missing &= is_filled.view(-1, *[1] * (missing.dim() - 1))
        extra, filler = batch.extra_inputs or ExtraInputs(), Bounds.of(batch.bounds).filler(batch.inputs)
        varies = ~missing if extra.varies is None else ~missing & extra.varies
        inputs = torch.where(missing, filler, batch.inputs)
        return replace(batch, inputs=inputs, extra_inputs=replace(extra, varies=varies, inputs=batch.inputs))


def _runs(rows: Sequence[int]) -> Iterator[range]:
    """Rows in stretches of consecutive ones."""
    start = 0
    for place, row in enumerate(rows):
        if place + 1 == len(rows) or rows[place + 1] != row + 1:
            yield range(rows[start], row + 1)
            start = place + 1


def readable(batch: Batch) -> Tensor:
    """Return for each input whether it was read and holds no NaN or infinite value, `[B]`."""
    read = torch.tensor([status.has_value for status in batch.status], dtype=torch.bool, device=batch.inputs.device)
    return read & batch.inputs.flatten(1).isfinite().all(dim=1)


def usable(batch: Batch) -> Tensor:
    """Return the inputs that were read and hold no NaN or infinite value, `[V, *shape]`."""
    return batch.inputs[readable(batch)]


def check_values(batch: Batch, bounds: BoundsLike) -> None:
    """Raise where an input lies outside the declared bounds."""
    inputs, bounds = usable(batch), Bounds.of(bounds)
    if inputs.numel() == 0:
        return
    bounds.check_shape(inputs.shape[1:])
    outside = ~bounds.contains(inputs)
    if not bool(outside.any()):
        return
    place = int(outside.nonzero()[0])
    row = int(torch.tensor(batch.rows)[readable(batch).cpu()][place])
    rows_text = f"in {int(outside.sum())} of {len(inputs)} rows, the first of them row {row}"
    if bounds.pair is None:
        values = inputs[place].double().cpu().flatten()
        lower, upper = (end.expand(inputs.shape[1:]).flatten() for end in (bounds.lower, bounds.upper))
        feature = int(torch.maximum(lower - values, values - upper).argmax())
        raise DataError(
            "value_range",
            f"values outside the bounds of their feature {rows_text}, which holds {float(values[feature]):.4g} at the "
            f"feature in place {feature}, outside [{float(lower[feature]):g}, {float(upper[feature]):g}]; give bounds "
            "that hold all rows, or none (--bounds none, bounds='none')",
        )
    low, high = bounds.pair
    smallest, largest = float(inputs.min()), float(inputs.max())
    pixels = "use --bounds 0 255 (bounds=(0, 255)) or divide by 255"
    are_pixels = smallest >= 0 and 16 < largest <= 255 and (low, high) == (0.0, 1.0)
    if batch.inputs.dim() == 2:
        is_whole = bool((inputs == inputs.round()).all())
        advice = (
            "for a table add --noise per-feature --sigma 0.1 (noise='per-feature', sigma=0.1), noise of a tenth of the "
            "deviation of each feature, which needs no bounds; for distances, or noise of one size in all features, "
            "take --bounds none (bounds='none')" + (f"; of pixels {pixels}" if are_pixels and is_whole else "")
        )
    elif are_pixels:
        advice = pixels
    elif smallest < low and high - low <= 2:
        advice = "the data look normalised; give pixels and declare --mean and --std (mean=, std=) instead"
    else:
        advice = "declare the range with --bounds LO HI (bounds=)"
    raise DataError(
        "value_range", f"values from {smallest:.4g} to {largest:.4g}, outside [{low:g}, {high:g}] {rows_text}; {advice}"
    )
