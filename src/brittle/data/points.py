"""What every reader turns its files into: points, read in batches, each with an id of its own."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple, Protocol, overload, runtime_checkable

import torch
from torch import Tensor

from brittle.data.exif import EXIF
from brittle.data.images import Failure, Look, Picture, UnreadableImage, decode, from_levels, look_at, thumbnails
from brittle.errors import DataError, ParameterError
from brittle.estimate import Status
from brittle.model.bounds import check_bounds

SCANNED = 10_000
"""Images whose size is compared when a data set is opened; later ones are compared when they are read."""


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
        detail: what was seen where reading failed, `[B]`.
        images: for each point PNG bytes of a thumbnail, `[B]`, or None where inputs are no images.
        turned: whether the EXIF data of each point's image say that it is turned or mirrored, `[B]`; None where they
            are not looked at.
    """

    rows: tuple[int, ...]
    ids: tuple[str, ...]
    names: tuple[str, ...] | None
    labels: tuple[int, ...] | None
    inputs: Tensor
    status: tuple[Status, ...]
    detail: tuple[str | None, ...]
    images: tuple[bytes | None, ...] | None = None
    turned: tuple[bool, ...] | None = None

    def __len__(self) -> int:
        return len(self.rows)


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


@dataclass(frozen=True)
class Options:
    """How data are to be read.

    Attributes:
        split: part of the data, such as `test`, or None for the only or the usual one.
        bounds: smallest and largest value of an input.
        limit: how many points are kept, from the first; None keeps all.
        layout: axis order of image arrays, one of `brittle.data.arrays.LAYOUTS`, or None.
        scale_uint8: whether arrays of whole numbers 0..255 are mapped to the bounds.
        exif: what is done with the orientation of encoded images, one of `brittle.data.exif.EXIF`.

    Raises:
        ParameterError: a limit below 1, bounds that are not finite and increasing, or another word for `exif`.
    """

    split: str | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    limit: int | None = None
    layout: str | None = None
    scale_uint8: bool = False
    exif: str = "ignore"

    def __post_init__(self) -> None:
        if self.exif not in EXIF:
            raise ParameterError("exif", f"exif must be one of {', '.join(EXIF)}; found {self.exif!r:.80}")
        if self.limit is not None and self.limit < 1:
            raise ParameterError("limit", f"the limit must be at least 1 point; found {self.limit}")
        check_bounds(self.bounds)


class Chunk(NamedTuple):
    """Some inputs, as they are read.

    Attributes:
        inputs: `[B, *shape]`.
        failures: why those at some positions could not be read.
        turned: positions of the images whose EXIF data say that they are turned or mirrored; None where they are not
            looked at.
    """

    inputs: Tensor
    failures: Mapping[int, Failure] = MappingProxyType({})
    turned: frozenset[int] | None = None


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
        read: gives the inputs in order, as many at a time as it is told, from the row that it is told.
        bounds: smallest and largest value of an input, for the thumbnails.
        provenance: where the points come from.
        labels: class index of each point, `[N]`, or None.
        names: what the source calls each point, `[N]`, or None.
        class_names: names of the classes, or None.

    Raises:
        DataError: there are no points, two share an id, or the labels are not as many as the points.
    """

    ids: tuple[str, ...] | RowIds
    read: Callable[[int, int], Iterator[Chunk]] = field(repr=False)
    bounds: tuple[float, float]
    provenance: dict[str, Any]
    labels: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        source = self.provenance["path"] or "the data"
        if not self.ids:
            raise DataError("empty_dataset", f"{source} holds no points; at least 1 is needed")
        if isinstance(self.ids, RowIds):
            return
        if (odd := next((row for row, own in enumerate(self.ids) if not _is_text(own)), None)) is not None:
            raise DataError(
                "id_text",
                f"the id of row {odd} of {source} is {self.ids[odd]!r:.80}, which UTF-8 cannot hold; escape it, or "
                f"leave the ids out",
            )
        if len(set(self.ids)) < len(self.ids):
            first, second = _same(self.ids)
            raise DataError(
                "duplicate_id",
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
            raise ParameterError("batch_size", f"the batch size must be at least 1; found {size}")
        end = len(self) if stop is None else min(stop, len(self))
        for chunk in self.read(size, start):
            kept = min(len(chunk.inputs), end - start)
            yield self._batch(range(start, start + kept), chunk)
            start += kept
            if stop is not None and start == end:
                return
        if start != end:
            raise changed(self.provenance["path"], f"{start} points were read, {len(self)} were there before")

    def _batch(self, rows: range, chunk: Chunk) -> Batch:
        """The first points of a chunk, as many as there are rows."""
        part, inputs, turned = slice(rows.start, rows.stop), chunk.inputs[: len(rows)], chunk.turned
        drawn = thumbnails(inputs, self.bounds)
        found = [chunk.failures.get(position) for position in range(len(rows))]
        return Batch(
            rows=tuple(rows),
            ids=self.ids[part],
            names=None if self.names is None else self.names[part],
            labels=None if self.labels is None else self.labels[part],
            inputs=inputs,
            status=tuple(Status.OK if failure is None else failure.status for failure in found),
            detail=tuple(
                None if failure is None else f"row {row}{self._called(row)}: {failure.seen}"
                for row, failure in zip(rows, found, strict=True)
            ),
            images=drawn and tuple(png if failure is None else None for png, failure in zip(drawn, found, strict=True)),
            turned=None if turned is None else tuple(position in turned for position in range(len(rows))),
        )

    def _called(self, row: int) -> str:
        return "" if self.names is None else f" ({self.names[row]})"


@dataclass(frozen=True)
class EncodedImages:
    """Inputs that are encoded images of one size, decoded chunk by chunk.

    Attributes:
        files: the encoded images in order from the row that it is told, each at its beginning.
        names: what the source calls each image, `[N]`.
        bounds: what the levels 0 and 255 are mapped to.
        turn: whether an image is turned as its EXIF data say.
        look: mode and size of the data set: those of its first image that can be decoded.
        first: the row of that image.
    """

    files: Callable[[int], Generator[BinaryIO, None, None]]
    names: Sequence[str]
    bounds: tuple[float, float]
    turn: bool
    look: Look
    first: int

    @classmethod
    def open(
        cls, files: Callable[[int], Generator[BinaryIO, None, None]], names: Sequence[str], options: Options
    ) -> EncodedImages:
        """Find out mode and size of the data set, and compare the sizes of its first `SCANNED` images.

        Args:
            files: the encoded images in order from the row that it is told, each at its beginning.
            names: what the source calls each image, `[N]`.
            options: how the data are to be read.

        Raises:
            DataError: none of these images can be decoded, or their sizes differ.
        """
        turn = options.exif == "apply"
        with closing(files(0)) as streams:
            first, look = _first_readable(streams, names, turn)
        images = cls(files, names, options.bounds, turn, look, first)
        with closing(files(0)) as streams:
            for row, stream in enumerate(islice(streams, SCANNED)):
                try:
                    size = look_at(stream, turn=turn).size
                except UnreadableImage:
                    continue  # its row gets a status when it is read
                images.check_size(row, size)
        return images

    def read(self, size: int, start: int) -> Iterator[Chunk]:
        """The images from row `start`, `size` at a time: `[B, channels, height, width]` and what failed."""
        with closing(self.files(start)) as streams:
            files = enumerate(streams, start)
            while chunk := list(self._decoded(islice(files, size))):
                failures = {position: one for position, one in enumerate(chunk) if isinstance(one, Failure)}
                inputs = torch.zeros(len(chunk), *self.look.shape, dtype=torch.float32)
                pictures = {position: one for position, one in enumerate(chunk) if isinstance(one, Picture)}
                if pictures:
                    levels = torch.stack([one.pixels for one in pictures.values()])
                    inputs[list(pictures)] = from_levels(levels, self.bounds)
                turned = frozenset(position for position, one in pictures.items() if one.turned)
                yield Chunk(inputs, failures, turned)

    def check_size(self, row: int, size: tuple[int, int]) -> None:
        """Raise where image `row` does not have the size of the data set.

        Raises:
            DataError: it does not.
        """
        if size != self.look.size:
            width, height = self.look.size
            raise DataError(
                "shape_mixed",
                f"{self.names[row]} has {size[0]} x {size[1]} pixels, {self.names[self.first]} {width} x {height}; "
                f"bring all images to one size first{' (turned as their EXIF data say)' if self.turn else ''}",
            )

    def _decoded(self, files: Iterator[tuple[int, BinaryIO]]) -> Iterator[Picture | Failure]:
        for row, stream in files:
            try:
                picture = decode(stream, self.look.mode, turn=self.turn)
            except UnreadableImage as error:
                yield error.failure
                continue
            self.check_size(row, (picture.pixels.shape[2], picture.pixels.shape[1]))
            yield picture


def _first_readable(files: Iterator[BinaryIO], names: Sequence[str], turn: bool) -> tuple[int, Look]:
    """Row and look of the first image that can be decoded."""
    seen: list[str] = []
    for row, stream in enumerate(islice(files, SCANNED)):
        try:
            decode(stream)
        except UnreadableImage as error:
            seen.append(f"{names[row]}: {error.failure.seen}")
        else:
            stream.seek(0)
            return row, look_at(stream, turn=turn)
    raise DataError("no_readable_image", f"none of the first {len(seen)} images can be read; the first is {seen[0]}")


def changed(path: str | None, seen: str) -> DataError:
    """The error for data that are not what they were when they were opened."""
    return DataError("dataset_changed", f"{path} changed since it was opened: {seen}; open it again")


def text(path: str | os.PathLike[str]) -> str:
    """A path as text that can be stored: with forward slashes, bytes that are not UTF-8 as `\\xNN`.

    A backslash in a name is doubled, so that no two paths give one text.
    """
    return os.fsencode(Path(path).as_posix()).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def file_digest(path: Path) -> str:
    """The sha256 of a file, in hexadecimal.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError("unreadable", f"{text(path)} cannot be read: {error.strerror or error}") from error


def files_digest(root: Path, files: Sequence[Path]) -> str:
    """The sha256 over the sorted paths of `files`, relative to `root`, and their own sha256."""
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in files):
        digest.update(os.fsencode(name) + b"\0" + file_digest(path).encode() + b"\n")
    return digest.hexdigest()


def _is_text(own: str) -> bool:
    """Whether a string can be stored as UTF-8."""
    return own.isascii() or not any("\ud800" <= character <= "\udfff" for character in own)


def _same(ids: Sequence[str]) -> tuple[int, int]:
    """Positions of the first id that stands twice."""
    where: dict[str, int] = {}
    for row, own in enumerate(ids):
        if own in where:
            return where[own], row
        where[own] = row
    raise ValueError("all ids are distinct")
