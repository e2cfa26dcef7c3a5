"""Interval bound propagation: a box around all values that each layer can take."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from brittle.extensions.certificates.curves import CURVES
from brittle.extensions.certificates.graph import Layer, run_layer
from brittle.extensions.certificates.operators import BILINEAR, MAXIMA, MOVES, SUMS
from brittle.extensions.certificates.region import Enclosure
from brittle.extensions.certificates.softmax import box, seen_places

_lower, _upper = attrgetter("lower"), attrgetter("upper")

RISING = MAXIMA | MOVES | {"relu", "leaky_relu", "sigmoid", "tanh"}
"""Layers that decrease in none of their arguments' numbers."""


def propagate(layer: Layer, args: tuple[Any, ...]) -> Enclosure:
    """The box of one layer from the boxes among its arguments.

    An affine layer `W h + b` sends centre and radius of a box to `W c + b` and `|W| r`; a layer that does not decrease
    is applied to both ends; of a product of two values the four corners count. Exact for one layer, loose for several,
    because the dependence between numbers is lost.

    Source: Gowal et al., On the effectiveness of interval bound propagation for training verifiably robust models
    (2018), section 3.1.
    """
    operator = layer.operator
    if operator in RISING and not (operator == "leaky_relu" and args[1:2] and not 0 <= args[1] <= 1):
        return Enclosure(*(run_layer(layer, _pick(args, part)) for part in (_lower, _upper)))
    if operator in CURVES:
        curve, interval = CURVES[operator](*args[1:]), args[0]
        return Enclosure(curve.least(interval.lower, interval.upper), curve.most(interval.lower, interval.upper))
    if operator == "softmax":
        interval, axis, mask = args[0], args[1], args[2] if len(args) > 2 else None
        ends = Enclosure(interval.lower.movedim(axis, -1), interval.upper.movedim(axis, -1))
        return box(ends, seen_places(mask, interval.lower)).map(lambda end: end.movedim(-1, axis))
    if operator in SUMS:
        return _sum(layer, args)
    if operator in BILINEAR and all(isinstance(one, Enclosure) for one in args[:2]):
        return _product(layer, args)
    centre = run_layer(layer, _pick(args, lambda box: box.centre))
    constants = (Tensor, int, float) if operator in _ARITHMETIC else Tensor
    bare = tree_map(lambda one: abs(one) if isinstance(one, constants) else one, args)  # sizes and axes stay
    widths = run_layer(layer, _pick(bare, lambda box: box.radius))
    offset = run_layer(layer, _pick(bare, lambda box: 0 * box.radius))
    spread = (widths - offset).abs()
    return Enclosure(centre - spread, centre + spread)


def _sum(layer: Layer, args: tuple[Any, ...]) -> Enclosure:
    """Ends with ends, crosswise where one is subtracted."""
    factor = args[2] if len(args) > 2 else 1
    signs = {"add": (1, factor), "sub": (1, -factor), "rsub": (-factor, 1)}[layer.operator]

    def end(upper: bool) -> Tensor:
        chosen = [
            (one.upper if upper == (sign >= 0) else one.lower) if isinstance(one, Enclosure) else one
            for one, sign in zip(args, signs, strict=False)
        ]
        return run_layer(layer, (*chosen, *args[2:]))

    return Enclosure(end(upper=False), end(upper=True))


def _product(layer: Layer, args: tuple[Any, ...]) -> Enclosure:
    """`x y` of two boxes: exact number by number, and centre and radius where products are summed."""
    one, other, *rest = args
    if layer.operator == "mul":
        corners = [run_layer(layer, (x, y)) for x in (one.lower, one.upper) for y in (other.lower, other.upper)]
        return Enclosure(reduce(torch.minimum, corners), reduce(torch.maximum, corners))

    def of(left: Tensor, right: Tensor) -> Tensor:
        return run_layer(layer, (left, right, *rest))

    centre = of(one.centre, other.centre)
    radius = of(one.centre.abs() + one.radius, other.radius) + of(one.radius, other.centre.abs())
    return Enclosure(centre - radius, centre + radius)


def _pick(args: tuple[Any, ...], part: Callable[[Enclosure], Tensor]) -> tuple[Any, ...]:
    return tree_map(lambda one: part(one) if isinstance(one, Enclosure) else one, args)


_ARITHMETIC = frozenset({"mul", "div"})
"""Layers whose numbers are factors, and not sizes or axes."""
