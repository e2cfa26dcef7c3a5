"""Steps of the walk through a network that are neither affine nor a function of each number alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from brittle.measure.certified.enclosure import Bounded, Enclosure
from brittle.measure.certified.graph import Layer, run_layer
from brittle.measure.certified.intervals import propagate
from brittle.measure.certified.maxima import candidates
from brittle.measure.certified.operators import FUNCTIONS
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
