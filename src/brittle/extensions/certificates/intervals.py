"""Interval bound propagation: a box around all values that each layer can take."""

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
from brittle.extensions.certificates.softmax import box, visible_places

_lower, _upper = attrgetter("lower"), attrgetter("upper")

RISING = MAXIMA | MOVES | {"relu", "leaky_relu", "sigmoid", "tanh"}  # layers that decrease in no number of an argument


def propagate(layer: Layer, args: tuple[Any, ...]) -> Enclosure:
    """Return the box of one layer from the boxes among its arguments.

    An affine layer `W h + b` sends centre and radius of a box to `W c + b` and `|W| r`; a layer that does not decrease
    is applied to both ends; a product of two values to the four corners. Exact for one layer, loose for several,
    because the dependence between numbers is lost.

    Source: Gowal et al., On the effectiveness of interval bound propagation for training verifiably robust models
    (2018), section 3.1.
    """
    operator = layer.operator
    if operator in RISING and not (operator == "leaky_relu" and args[1:2] and not 0 <= args[1] <= 1):
        return Enclosure(*(run_layer(layer, _pick(args, part)) for part in (_lower, _upper)))
    if operator in CURVES:
        curve, pair = CURVES[operator](*args[1:]), (args[0].lower, args[0].upper)
        return Enclosure(curve.lower_bound(*pair), curve.upper_bound(*pair))
    if operator == "softmax":
        interval, axis, mask = args[0], args[1], args[2] if len(args) > 2 else None
        ends = Enclosure(interval.lower.movedim(axis, -1), interval.upper.movedim(axis, -1))
        return box(ends, visible_places(mask, interval.lower)).map(lambda end: end.movedim(-1, axis))
    if operator in SUMS:
        return _sum(layer, args)
    if operator in BILINEAR and all(isinstance(arg, Enclosure) for arg in args[:2]):
        return _product(layer, args)
    centre = run_layer(layer, _pick(args, lambda box: box.centre))
    constants = (Tensor, int, float) if operator in _ARITHMETIC else Tensor
    absolute_args = tree_map(lambda arg: abs(arg) if isinstance(arg, constants) else arg, args)  # sizes and axes stay
    widths = run_layer(layer, _pick(absolute_args, lambda box: box.radius))
    offset = run_layer(layer, _pick(absolute_args, lambda box: 0 * box.radius))
    spread = (widths - offset).abs()
    return Enclosure(centre - spread, centre + spread)


def _sum(layer: Layer, args: tuple[Any, ...]) -> Enclosure:
    """Add the ends, crosswise for a subtraction."""
    factor = args[2] if len(args) > 2 else 1
    signs = {"add": (1, factor), "sub": (1, -factor), "rsub": (-factor, 1)}[layer.operator]

    def end(upper: bool) -> Tensor:
        ends = [
            (arg.upper if upper == (sign >= 0) else arg.lower) if isinstance(arg, Enclosure) else arg
            for arg, sign in zip(args, signs, strict=False)
        ]
        return run_layer(layer, (*ends, *args[2:]))

    return Enclosure(end(upper=False), end(upper=True))


def _product(layer: Layer, args: tuple[Any, ...]) -> Enclosure:
    """Bound `x y` of two boxes: exactly number by number, by centre and radius where products are summed."""
    x, y, *constants = args
    if layer.operator == "mul":
        corners = [run_layer(layer, (a, b)) for a in (x.lower, x.upper) for b in (y.lower, y.upper)]
        return Enclosure(reduce(torch.minimum, corners), reduce(torch.maximum, corners))

    def multiply(a: Tensor, b: Tensor) -> Tensor:
        return run_layer(layer, (a, b, *constants))

    centre = multiply(x.centre, y.centre)
    radius = multiply(x.centre.abs() + x.radius, y.radius) + multiply(x.radius, y.centre.abs())
    return Enclosure(centre - radius, centre + radius)


def _pick(args: tuple[Any, ...], part: Callable[[Enclosure], Tensor]) -> tuple[Any, ...]:
    return tree_map(lambda arg: part(arg) if isinstance(arg, Enclosure) else arg, args)


_ARITHMETIC = frozenset({"mul", "div"})  # layers whose constant numbers are factors, not sizes or axes
