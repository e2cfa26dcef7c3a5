"""What points have beside the inputs that vary: other tensors, and which coordinates vary."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.data.listed import ListedPoints
from brittle.data.no_array import plain_array
from brittle.data.points import Batch, Points
from brittle.errors import DataError, ParameterError
from brittle.model.aside import Aside


def aside_of(
    inputs: Tensor, beside: Mapping[str, Tensor | np.ndarray], mask: str | Tensor | np.ndarray | None
) -> Aside | None:
    """What the points have beside their inputs; None where there is nothing.

    Raises:
        DataError: a tensor has another number of rows, or the mask other axes than the inputs.
        ParameterError: the mask names none of the tensors.
    """
    tensors = {name: _copied(one, f"{name} (beside=)") for name, one in beside.items()}
    odd = next((name for name, one in tensors.items() if not one.dim() or len(one) != len(inputs)), None)
    if odd is not None:
        raise DataError(
            "shape",
            f"{odd} (beside=) has shape {tuple(tensors[odd].shape)} for {len(inputs)} points; expected a row each",
        )
    if isinstance(mask, str):
        if mask not in tensors:
            names = ", ".join(tensors) or "none"
            raise ParameterError(f"mask names one of the tensors in beside; found {mask!r:.60}, there: {names}")
        mask = tensors[mask]
    if mask is None:
        return Aside(tensors=tensors) if tensors else None
    mask = _copied(mask, "the mask")
    if bool(mask.isnan().any()):
        raise DataError("mask", f"the mask holds {int(mask.isnan().sum())} NaN; give 1 or 0 for each number")
    varies = mask != 0
    if varies.dim() < 2 or varies.shape != inputs.shape[: varies.dim()]:
        raise DataError(
            "mask",
            f"the mask has shape {tuple(varies.shape)} for inputs of shape {tuple(inputs.shape)}; expected their first "
            f"axes, such as {tuple(inputs.shape[:2])}",
        )
    if not bool(varies.flatten(1).any(dim=1).all()):
        row = int((~varies.flatten(1).any(dim=1)).nonzero()[0])
        raise DataError("mask", f"the mask of row {row} holds no 1, so nothing of it can vary; leave the row out")
    return Aside(None, tensors, varies.view(*varies.shape, *[1] * (inputs.dim() - varies.dim())), inputs)


def _copied(one: Tensor | np.ndarray, where: str) -> Tensor:
    """A tensor of these numbers that nobody else writes to.

    Raises:
        DataError: they are no numbers.
    """
    if isinstance(one, Tensor) and one.layout == torch.strided:
        return one.detach().clone()
    array = plain_array(one, where)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise DataError("dtype", f"{where} has type {array.dtype}; expected a tensor or an array of numbers")
    return torch.from_numpy(np.array(array, array.dtype.newbyteorder("=")))


@dataclass(frozen=True)
class StillPoints:
    """Other points, of which some coordinates do not vary in a run.

    Attributes:
        points: the points.
        moves: which coordinates of each vary, `[n]`.
    """

    points: Points
    moves: Tensor

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
        for batch in self.points.batches(size, start, stop):
            varies, aside = self.moves.view(batch.inputs.shape[1:]).expand(batch.inputs.shape), batch.aside or Aside()
            varies = varies if aside.varies is None else varies & aside.varies
            yield replace(batch, aside=replace(aside, varies=varies, inputs=batch.inputs))


def with_aside(points: ListedPoints, aside: Aside | None) -> ListedPoints:
    """`points` with what they have beside their inputs, which their digest covers."""
    if aside is None:
        return points
    digest = hashlib.sha256(str(points.provenance["sha256"]).encode())
    parts = dict(sorted(aside.tensors.items())) | ({} if aside.varies is None else {"varies": aside.varies})
    for name, tensor in parts.items():
        digest.update(repr((name, str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(tensor.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    known = {"sha256": digest.hexdigest(), "beside": sorted(aside.tensors), "masked": aside.varies is not None}
    return replace(points, aside=aside, provenance=points.provenance | known)
