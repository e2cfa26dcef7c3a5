"""What every reader turns its files into: points, read in batches, each with an id of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from brittle.data.images import thumbnails
from brittle.estimate import Status
from brittle.model.aside import Aside
from brittle.model.bounds import BoundsLike


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
        targets: of each point the numbers that are right, `[B, R]`, float64, where it has several labels (1 holds, 0
            does not) or a number is predicted; None elsewhere.
        aside: other tensors of the points, and which coordinates of the inputs vary, a row each; None where there are
            neither.
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
    bounds: BoundsLike
    turned: tuple[bool, ...] | None = None
    targets: Tensor | None = None
    aside: Aside | None = None

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
