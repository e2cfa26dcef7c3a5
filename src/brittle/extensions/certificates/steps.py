"""The numbers of windows for maxima, and functions between planes for softmax."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from brittle.extensions.certificates.graph import Layer, UnsupportedLayer
from brittle.extensions.certificates.softmax import Planes


class BetweenPlanes(torch.autograd.Function):
    """A function of the last axis between two planes, as `crown._Between` between two lines."""

    @staticmethod
    def forward(ctx: Any, entering: Tensor, offsets: Tensor, values: Tensor, planes: Planes) -> Tensor:
        entering = entering.detach()[..., None]
        below = (planes.lower @ entering)[..., 0] + planes.low - values
        above = (planes.upper @ entering)[..., 0] + planes.high - values
        ctx.rows = len(offsets)
        ctx.save_for_backward(planes.lower, planes.upper, below, above)
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        lower, upper, below, above = ctx.saved_tensors
        positive, negative = gradients[0].clamp(min=0), gradients[0].clamp(max=0)
        slopes = (positive[..., None, :] @ lower + negative[..., None, :] @ upper)[..., 0, :]
        return slopes, (positive * below + negative * above).reshape(ctx.rows, -1).sum(dim=1), None, None


def candidates(layer: Layer, value: Tensor, constants: tuple[Any, ...], shape: torch.Size, fill: Tensor) -> Tensor:
    """Return the `k` numbers behind each number of the layer's value, `[B, k, ...]`.

    The layer is one of `operators.MAXIMA` but `maximum`, with its other arguments and the shape of its value; `fill`,
    `[B]`, fills the padding of each row and is at most its least number.
    """
    if layer.operator == "amax":
        return _numbers_of_axes(value, constants[0], len(fill))
    axes, pads, windows = 1 if layer.operator.endswith("1d") else 2, list[int](), list[list[slice]]()
    for place, (size, count) in enumerate(zip(value.shape[-axes:], shape[-axes:], strict=True)):
        if layer.operator.startswith("adaptive"):
            if size % count:
                raise UnsupportedLayer(f"{layer.label} of windows of different sizes ({size} to {count})")
            kernel, stride, before, step = size // count, size // count, 0, 1
        else:
            kernel, stride, before, step = (
                _size_of_axis(constants, number, place, default) for number, default in enumerate((1, 0, 0, 1))
            )
            stride = stride or kernel
        reach, starts = (count - 1) * stride + 1, range(0, step * kernel, step)
        windows.append([slice(start, start + reach, stride) for start in starts])
        pads = [before, max(0, reach + starts[-1] - size - before), *pads]
    if any(pads):
        outside = pad(torch.zeros_like(value, dtype=torch.bool), pads, value=True)
        value = torch.where(outside, fill.view(-1, *[1] * (value.dim() - 1)), pad(value, pads))
    numbers = [value]
    for behind, slices in zip(range(axes)[::-1], windows, strict=True):
        numbers = [values[(..., part, *[slice(None)] * behind)] for values in numbers for part in slices]
    return torch.stack(numbers)[None] if len(fill) == 1 else torch.stack(numbers, dim=1)


def _numbers_of_axes(value: Tensor, axes: Any, rows: int) -> Tensor:
    reduced_axes = {axis % value.dim() for axis in ([axes] if isinstance(axes, int) else axes)}
    if rows == 1:
        value, reduced_axes = value[None], {axis + 1 for axis in reduced_axes}
    row_axes = [axis for axis in range(1, value.dim()) if axis not in reduced_axes]
    return value.permute(0, *sorted(reduced_axes), *row_axes).flatten(1, len(reduced_axes))


def _size_of_axis(constants: tuple[Any, ...], number: int, place: int, default: int) -> int:
    """Return one size of a pooling layer, whose constants may have one for all axes together or none."""
    sizes = constants[number] if number < len(constants) else default
    if isinstance(sizes, int):
        return sizes
    return default if not sizes else sizes[place if len(sizes) > 1 else 0]
