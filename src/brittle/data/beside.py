"""What points in memory have beside the inputs that vary: other tensors, and a mask of the coordinates that exist."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from brittle.data.listed import ListedPoints
from brittle.data.no_array import plain_array
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
            "length",
            f"{odd} (beside=) has shape {tuple(tensors[odd].shape)} for {len(inputs)} points; expected a row each",
        )
    if isinstance(mask, str):
        if mask not in tensors:
            names = ", ".join(tensors) or "none"
            raise ParameterError("mask", f"mask names one of the tensors in beside; found {mask!r:.60}, there: {names}")
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
