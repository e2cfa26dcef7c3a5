"""The numbers of windows, and functions between planes: what the walk needs for maxima and shares."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from brittle.extensions.certificates.graph import Layer, UnsupportedLayer
from brittle.extensions.certificates.softmax import Planes


class BetweenPlanes(torch.autograd.Function):
    """A function of the last axis between two planes, as `crown._Between` between two lines."""

    @staticmethod
    def forward(ctx: Any, entering: Tensor, beside: Tensor, values: Tensor, found: Planes) -> Tensor:
        """`values`, the function of `entering`; how far each plane lies beside it is kept."""
        entering = entering.detach()[..., None]
        below = (found.lower @ entering)[..., 0] + found.low - values
        above = (found.upper @ entering)[..., 0] + found.high - values
        ctx.rows = len(beside)
        ctx.save_for_backward(found.lower, found.upper, below, above)
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Negative coefficients take the upper plane, positive ones the lower."""
        lower, upper, below, above = ctx.saved_tensors
        positive, negative = gradients[0].clamp(min=0), gradients[0].clamp(max=0)
        slopes = (positive[..., None, :] @ lower + negative[..., None, :] @ upper)[..., 0, :]
        return slopes, (positive * below + negative * above).reshape(ctx.rows, -1).sum(dim=1), None, None


def candidates(layer: Layer, value: Tensor, constants: tuple[Any, ...], shape: torch.Size, fill: Tensor) -> Tensor:
    """The `k` numbers behind each number of the layer's value, `[B, k, ...]`.

    The layer is one of `operators.MAXIMA` but `maximum`, with its other arguments and the shape of its value; `fill`
    stands in the padding, a number for each row, `[B]`, no larger than any that can enter.
    """
    if layer.operator == "amax":
        return _of_axes(value, constants[0], len(fill))
    places = _places(layer, value, constants, shape)
    filled = _filled(value, places, fill)
    found = [filled]
    for axis, (_, _, starts, stride, count) in places.items():
        found = [
            one.narrow(axis, start, (count - 1) * stride + 1)[
                (slice(None),) * (axis % one.dim()) + (slice(None, None, stride),)
            ]
            for one in found
            for start in starts
        ]
    return torch.stack(found)[None] if len(fill) == 1 else torch.stack(found, dim=1)


def _of_axes(value: Tensor, axes: Any, rows: int) -> Tensor:
    chosen = {axis % value.dim() for axis in ([axes] if isinstance(axes, int) else axes)}
    if rows == 1:
        value, chosen = value[None], {axis + 1 for axis in chosen}
    rest = [axis for axis in range(1, value.dim()) if axis not in chosen]
    moved = value.permute(0, *sorted(chosen), *rest)
    return moved.flatten(1, len(chosen))


def _places(layer: Layer, value: Tensor, constants: tuple[Any, ...], shape: torch.Size) -> dict[int, Any]:
    """By axis: what is added on its left and right, where the windows' places start, their stride and count."""
    axes = 1 if layer.operator.endswith("1d") else 2
    found = {}
    for place, axis in enumerate(range(-axes, 0)):
        size, count = value.shape[axis], shape[axis]
        if layer.operator.startswith("adaptive"):
            if size % count:
                raise UnsupportedLayer(f"{layer.words} of windows of different sizes ({size} to {count})")
            kernel, stride, left, step = size // count, size // count, 0, 1
        else:
            kernel, stride, left, step = (
                _of(constants, number, place, default) for number, default in enumerate((1, 0, 0, 1))
            )
            stride = stride or kernel
        reached = (count - 1) * stride + step * (kernel - 1) + 1
        right = max(0, reached - size - left)
        found[axis] = left, right, [step * number for number in range(kernel)], stride, count
    return found


def _of(constants: tuple[Any, ...], number: int, place: int, default: int) -> int:
    """One size of a pooling layer, which may be given for all axes together or not at all."""
    given = constants[number] if number < len(constants) else default
    if isinstance(given, int):
        return given
    return default if not given else given[place if len(given) > 1 else 0]


def _filled(value: Tensor, places: dict[int, Any], fill: Tensor) -> Tensor:
    pads = [amount for axis in sorted(places, reverse=True) for amount in places[axis][:2]]
    if not any(pads):
        return value
    outside = pad(torch.zeros_like(value, dtype=torch.bool), pads, value=True)
    return torch.where(outside, fill.view(-1, *[1] * (value.dim() - 1)), pad(value, pads))
