"""Interval bound propagation: a box around all values that each layer can take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_map

from brittle.measure.certified.graph import MONOTONE, Layer, Network, run_layer


@dataclass(frozen=True)
class Enclosure:
    """All values between two tensors.

    Attributes:
        lower: `[B, *shape]`, float64.
        upper: `[B, *shape]`, float64.
    """

    lower: Tensor
    upper: Tensor

    @property
    def centre(self) -> Tensor:
        """Half-way between the ends."""
        return (self.lower + self.upper) / 2

    @property
    def radius(self) -> Tensor:
        """Half the distance of the ends."""
        return (self.upper - self.lower) / 2

    def map(self, function: Callable[[Tensor], Tensor]) -> Enclosure:
        """What an elementwise function that does not decrease makes of it."""
        return Enclosure(function(self.lower), function(self.upper))

    def __and__(self, other: Enclosure) -> Enclosure:
        """What lies in both."""
        return Enclosure(self.lower.maximum(other.lower), self.upper.minimum(other.upper))


def interval_bounds(network: Network, inputs: Enclosure) -> Enclosure:
    """Bounds on the class scores, `[B, C]`, for all inputs in a box.

    An affine layer `W h + b` sends centre and radius of a box to `W c + b` and `|W| r`; a monotone layer is applied to
    both ends. Exact for one layer, loose for several, because the dependence between numbers is lost.

    Source: Gowal et al., On the effectiveness of interval bound propagation for training verifiably robust models
    (2018), section 3.1.

    Args:
        network: the layers.
        inputs: the box, in the classifier's units.
    """
    return network.interpret(inputs, propagate)


def propagate(layer: Layer, args: tuple[Any, ...]) -> Enclosure:
    """The box of one layer from the boxes among its arguments."""
    if layer.operator in MONOTONE:
        return args[0].map(lambda end: run_layer(layer, (end, *args[1:])))
    centre = run_layer(layer, _pick(args, lambda box: box.centre))
    bare = _without_signs(layer, args)
    radius = _RADIUS.get(layer.operator, layer.function)
    widths = run_layer(Layer(layer.name, layer.operator, radius, layer.args), _pick(bare, lambda box: box.radius))
    offset = run_layer(Layer(layer.name, layer.operator, radius, layer.args), _pick(bare, lambda box: 0 * box.radius))
    return Enclosure(centre - (widths - offset), centre + (widths - offset))


def _pick(args: tuple[Any, ...], part: Callable[[Enclosure], Tensor]) -> tuple[Any, ...]:
    return tree_map(lambda one: part(one) if isinstance(one, Enclosure) else one, args)


def _without_signs(layer: Layer, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with `|c|` for each constant `c` that is part of the affine map; sizes and axes stay."""
    constants = (Tensor, int, float) if layer.operator in _ARITHMETIC else Tensor
    return tree_map(lambda one: abs(one) if isinstance(one, constants) else one, args)


_ARITHMETIC = frozenset({"add", "sub", "rsub", "mul", "div", "addmm"})
"""Layers whose numbers are factors, and not sizes or axes."""

_RADIUS: dict[str, Callable[..., Tensor]] = {
    "neg": lambda value: value,
    "sub": lambda one, other, alpha=1: one + alpha * other,
    "rsub": lambda one, other, alpha=1: other + alpha * one,
}
"""Layers that subtract, as they act on radii."""
