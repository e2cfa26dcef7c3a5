"""A box of values, and a value with its box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


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


@dataclass(frozen=True)
class Bounded:
    """A layer's value at the points, with the graph of the relaxed network behind it, and its bounds over the region.

    Attributes:
        value: `[B, *shape]`, float64.
        interval: `[B, *shape]`, float64.
        settled: whether linear relaxation makes the interval no smaller, because it is the image of one that it cut, or
            because it is exact.
        free: whether each number is another one of the input's, scaled and shifted, so that all of a box is reached.
    """

    value: Tensor
    interval: Enclosure
    settled: bool = False
    free: bool = False
