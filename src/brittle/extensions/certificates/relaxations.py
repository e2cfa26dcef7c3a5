"""Two straight lines around a function on an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.extensions.certificates.curves import CURVES, NARROW, Curve, Function
from brittle.extensions.certificates.operators import KINKED
from brittle.extensions.certificates.region import Enclosure

HALVINGS = 20  # halvings of the bracket around a tangent point; the tangent is a bound after any number of them


@dataclass(frozen=True)
class Line:
    """`slope y + offset` for each number, `[B, *shape]`, float64."""

    slope: Tensor
    offset: Tensor

    def at(self, values: Tensor) -> Tensor:
        return self.slope * values + self.offset


@dataclass(frozen=True)
class Lines:
    """`lower(y) <= f(y) <= upper(y)` for all `y` of an interval."""

    lower: Line
    upper: Line

    def where_finite(self, interval: Enclosure) -> Lines:
        """Return the same lines, with nan offsets where an end of the interval is infinite."""
        is_finite = interval.lower.isfinite() & interval.upper.isfinite()
        return Lines(*(Line(line.slope, line.offset.where(is_finite, torch.nan)) for line in (self.lower, self.upper)))


def relax(operator: str, interval: Enclosure, constants: tuple[Any, ...]) -> Lines:
    """Return lines around the function of `operator` with its `constants` on `interval`."""
    if is_rectifier(operator, constants):
        return _rectifier_lines(interval, *constants[:1])
    if operator in S_SHAPED:
        return _s_shaped_lines(interval, *S_SHAPED[operator])
    return _curve_lines(interval, CURVES[operator](*constants))


def lines_differ(operator: str, interval: Enclosure, constants: tuple[Any, ...] = ()) -> Tensor:
    """Return true where the lines differ, so that a smaller interval brings them together, `[B, *shape]`."""
    if is_rectifier(operator, constants):
        return (interval.lower < 0) & (interval.upper > 0)
    if operator in S_SHAPED:
        return interval.upper - interval.lower > NARROW
    return CURVES[operator](*constants).is_curved(interval.lower, interval.upper)


def is_rectifier(operator: str, constants: tuple[Any, ...] = ()) -> bool:
    """Return whether the operator is the maximum of `y` and a multiple of it."""
    return operator in KINKED and (not constants or 0 <= constants[0] <= 1)


def _curve_lines(interval: Enclosure, curve: Curve) -> Lines:
    """Return lines of the slopes that the curve chooses, as near as its bounds allow; see `Curve`."""
    below, above = (curve.choose_slopes(interval.lower, interval.upper, sign) for sign in (-1, 1))
    return Lines(
        Line(below, -curve.bound_gap(interval.lower, interval.upper, below, -1)),
        Line(above, curve.bound_gap(interval.lower, interval.upper, above, 1)),
    )


def _rectifier_lines(interval: Enclosure, slope: float = 0.0) -> Lines:
    """Return lines around `max(y, slope y)`: the chord above; below, the piece that leaves the smaller area (Zhang et
    al., NeurIPS 2018, table 2 and the adaptive choice that follows it)."""
    lower, upper = interval.lower, interval.upper
    crossing = (lower < 0) & (upper > 0)
    rising_piece, falling_piece = torch.ones_like(lower), torch.full_like(lower, slope)
    one_piece = torch.where(lower >= 0, rising_piece, falling_piece)
    smaller_area = torch.where(upper >= -lower, rising_piece, falling_piece)
    chord = (upper - slope * lower) / torch.where(crossing, upper - lower, 1.0)
    nothing = torch.zeros_like(lower)
    return Lines(
        Line(torch.where(crossing, smaller_area, one_piece), nothing),
        Line(torch.where(crossing, chord, one_piece), torch.where(crossing, (slope - chord) * lower, nothing)),
    )


def _s_shaped_lines(interval: Enclosure, function: Function, derivative: Function) -> Lines:
    """Return lines around a function that is convex below 0 and concave above, with an even derivative (Zhang et al.,
    NeurIPS 2018, table 2). `-f(-y)` is one, too; its upper line, mirrored, is the lower line of `f`."""
    upper = _line_above(interval, function, derivative)
    mirrored = _line_above(Enclosure(-interval.upper, -interval.lower), lambda y: -function(-y), derivative)
    return Lines(Line(mirrored.slope, -mirrored.offset), upper)


def _line_above(interval: Enclosure, function: Function, derivative: Function) -> Line:
    """Return a tangent to the concave part that is not below the function at the lower end, or the chord.

    A tangent at `d >= 0` lies above the concave part; it lies above the convex part if it does at both ends. Where
    this holds for no `d` in the interval, the chord lies above. The tangent nearest to the middle is returned.
    """
    lower, upper = interval.lower, interval.upper

    def valid(point: Tensor) -> Tensor:
        return function(point) + derivative(point) * (lower - point) >= function(lower)

    low, high = lower.clamp(min=0), upper
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_valid = valid(middle)
        low, high = torch.where(is_valid, low, middle), torch.where(is_valid, middle, high)
    point = torch.where(lower >= 0, interval.centre, high.maximum(interval.centre))
    is_narrow = upper - lower <= NARROW
    chord = is_narrow.logical_not() & ((upper <= 0) | valid(upper).logical_not() & (lower < 0))
    point = torch.where(is_narrow, interval.centre, point)
    width = torch.where(chord, upper - lower, 1.0)
    slope = torch.where(chord, (function(upper) - function(lower)) / width, derivative(point))
    through = torch.where(chord, lower, point)
    return Line(slope, function(through) - slope * through)


S_SHAPED: dict[str, tuple[Function, Function]] = {
    "sigmoid": (torch.sigmoid, lambda y: torch.sigmoid(y) * torch.sigmoid(-y)),
    "tanh": (torch.tanh, lambda y: 1 - torch.tanh(y).square()),
}
"""Functions that are convex below 0 and concave above, with their derivatives."""
