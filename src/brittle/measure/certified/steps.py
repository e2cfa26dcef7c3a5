"""Steps of the walk through a network that are neither affine nor a function of each number alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

from brittle.measure.certified.graph import Layer, UnsupportedLayer, run_layer
from brittle.measure.certified.intervals import propagate
from brittle.measure.certified.operators import FUNCTIONS
from brittle.measure.certified.region import Bounded, Enclosure
from brittle.measure.certified.relaxations import Line, Lines
from brittle.measure.certified.softmax import Planes, planes, seen_places


class Relaxing(Protocol):
    """What a step needs of the walk through the network; see `crown.Walk`."""

    inputs: Tensor
    beside: Tensor
    widest: int

    def activation(self, layer: Layer, entering: Bounded, constants: tuple[Any, ...] = ()) -> Bounded:
        """A function of each number between its two lines."""
        ...

    def narrowed(self, entering: Bounded) -> Enclosure:
        """The interval, cut where that helps."""
        ...

    def keep(self, interval: Enclosure, cut: Callable[[], Enclosure]) -> Enclosure:
        """What is fixed once and for all walks over the same region: an interval, or one that is cut."""
        ...

    def between(self, entering: Tensor, values: Tensor, lines: Lines) -> Tensor:
        """`values` of a function, with two lines around it as the way back."""
        ...


def product(walk: Relaxing, layer: Layer, one: Bounded, other: Bounded, *rest: Any) -> Bounded:
    """`x y = c y + x d - c d + (x - c) (y - d)` with the centres `c`, `d` of the intervals, summed or not.

    The last term is at most the product of the radii, `r` and `s`. The planes `c y + x d - c d -+ r s` are the
    means of the two below and of the two above of McCormick (1976), and leave as much volume as each of them.
    """
    if one is other and layer.operator == "mul":
        return walk.activation(Layer(layer.name, "pow", FUNCTIONS["pow"], layer.args), one, (2,))
    first, second = walk.narrowed(one), walk.narrowed(other)

    def of(left: Tensor, right: Tensor) -> Tensor:
        return run_layer(layer, (left, right, *rest))

    centres = first.centre, second.centre
    plane = of(centres[0], other.value) + of(one.value, centres[1]) - of(*centres)
    radius, straight = of(first.radius, second.radius), torch.ones_like(plane)
    values = of(one.value.detach(), other.value.detach())
    lines = Lines(Line(straight, -radius), Line(straight, radius))
    found = walk.between(plane, values, lines)
    walk.widest = max(walk.widest, values.numel() // len(walk.inputs))
    return Bounded(found, propagate(layer, (first, second, *rest)))


def shares(walk: Relaxing, layer: Layer, entering: Bounded, axis: int, mask: Any = None) -> Bounded:
    """Each share between two planes in all numbers of its axis."""
    interval = walk.narrowed(entering)
    seen = seen_places(mask, entering.value)
    found = planes(interval.map(lambda end: end.movedim(axis, -1)), seen)
    values = run_layer(layer, (entering.value.detach(), axis, mask)).movedim(axis, -1)
    between = _BetweenPlanes.apply(entering.value.movedim(axis, -1), walk.beside, values, found)
    walk.widest = max(walk.widest, values.numel() // len(walk.inputs))
    return Bounded(between.movedim(-1, axis), propagate(layer, (interval, axis, mask)), settled=True)


def largest(walk: Relaxing, layer: Layer, args: tuple[Any, ...]) -> Bounded:
    """The largest of some numbers, half of them against the other half: `max(a, b) = a + relu(b - a)`."""
    if layer.operator == "maximum":
        return _larger(walk, layer, *(one if isinstance(one, Bounded) else _fixed(one) for one in args))
    entering, rows = args[0], len(walk.inputs)
    shape = run_layer(layer, (entering.value.detach(), *args[1:])).shape
    fill = Enclosure(*[entering.interval.lower.reshape(rows, -1).min(dim=1).values] * 2)
    least = walk.keep(fill, lambda: fill).lower
    parts = entering.value, entering.interval.lower, entering.interval.upper
    value, lower, upper = (candidates(layer, part, args[1:], shape, least) for part in parts)
    best = Bounded(value, Enclosure(lower, upper))
    while (count := best.value.shape[1]) > 1:
        first, second, left = (_part(best, *ends) for ends in _halves(count))
        best = _beside(_larger(walk, layer, first, second), left)
    return Bounded(best.value.reshape(shape), best.interval.map(lambda end: end.reshape(shape)))


def _larger(walk: Relaxing, layer: Layer, one: Bounded, other: Bounded) -> Bounded:
    apart = Enclosure(other.interval.lower - one.interval.upper, other.interval.upper - one.interval.lower)
    relu = Layer(layer.name, "relu", torch.relu, ())
    more = walk.activation(relu, Bounded(other.value - one.value, apart))
    best = Enclosure(one.interval.lower.maximum(other.interval.lower), one.interval.upper.maximum(other.interval.upper))
    return Bounded(one.value + more.value, best)


class _BetweenPlanes(torch.autograd.Function):
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


def _halves(count: int) -> tuple[tuple[int, int], ...]:
    """First half, second half, and what is left of `count` numbers."""
    half = count // 2
    return (0, half), (half, 2 * half), (2 * half, count)


def _part(value: Bounded, begin: int, end: int) -> Bounded:
    return Bounded(value.value[:, begin:end], value.interval.map(lambda one: one[:, begin:end]))


def _beside(one: Bounded, other: Bounded) -> Bounded:
    lower, upper = (
        torch.cat(ends, dim=1)
        for ends in ((one.interval.lower, other.interval.lower), (one.interval.upper, other.interval.upper))
    )
    return Bounded(torch.cat((one.value, other.value), dim=1), Enclosure(lower, upper))


def _fixed(value: Any) -> Bounded:
    """A constant."""
    return Bounded(value, Enclosure(value, value))


def candidates(layer: Layer, value: Tensor, constants: tuple[Any, ...], shape: torch.Size, fill: Tensor) -> Tensor:
    """The `k` numbers behind each number of the layer's value, `[B, k, ...]`.

    Args:
        layer: one of `operators.MAXIMA` but `maximum`.
        value: what enters it, `[B, ...]`.
        constants: the layer's other arguments.
        shape: of its value.
        fill: what stands in the padding, a number for each row, `[B]`; no larger than any number that can enter.
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
