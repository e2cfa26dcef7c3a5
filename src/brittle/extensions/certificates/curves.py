"""Functions of one number, in pieces that are convex, concave or straight, and lines around them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from brittle.extensions.certificates.graph import UnsupportedLayer

Function = Callable[[Tensor], Tensor]

HALVINGS = 40  # halvings of the bracket around the place where a curve has a slope; a bound holds after any number
POINTS = 8  # points of an interval, on each side of its middle, from which slopes are chosen
NARROW = 1e-9  # width below which an interval counts as one point: its slope is that of a tangent, not of a chord


@dataclass(frozen=True)
class Piece:
    """A stretch of a curve. It begins where the piece before it ends. `bend` is 1 where convex, -1 where concave, 0
    where straight; `slope` is the derivative in it, both ends included."""

    end: float
    bend: int
    slope: Function


@dataclass(frozen=True)
class Curve:
    """A continuous function of one number from `start` on. The last of its pieces, from the left, ends at infinity."""

    function: Function
    pieces: tuple[Piece, ...]
    start: float = -math.inf
    rising: bool = False

    def slope(self, values: Tensor) -> Tensor:
        """Return the derivative; at a kink that of the piece on the left."""
        slopes = self.pieces[-1].slope(values)
        for piece in reversed(self.pieces[:-1]):
            slopes = torch.where(values <= piece.end, piece.slope(values), slopes)
        return slopes

    def lower_bound(self, lower: Tensor, upper: Tensor) -> Tensor:
        """Return a lower bound of the function on `[lower, upper]`, `[B, *shape]`; exact where the function rises."""
        if self.rising:
            return self.function(lower)
        return -self.bound_gap(lower, upper, torch.zeros_like(lower), -1)

    def upper_bound(self, lower: Tensor, upper: Tensor) -> Tensor:
        """Return an upper bound of the function on `[lower, upper]`; exact where the function rises."""
        return self.function(upper) if self.rising else self.bound_gap(lower, upper, torch.zeros_like(lower), 1)

    def is_curved(self, lower: Tensor, upper: Tensor) -> Tensor:
        """Return true where no straight line equals the function on `[lower, upper]`."""
        is_bent = torch.zeros_like(lower, dtype=torch.bool)
        begin = -math.inf
        for piece in self.pieces:
            kink = (lower < piece.end) & (upper > piece.end)
            is_bent |= kink | ((lower < piece.end) & (upper > begin) & bool(piece.bend))
            begin = piece.end
        return is_bent & (upper - lower > NARROW)

    def bound_gap(self, lower: Tensor, upper: Tensor, slopes: Tensor, sign: int) -> Tensor:
        """Return an upper bound of `sign (f(y) - s y)` over `[lower, upper]`, for any `s`; nan outside the domain.

        On a convex or straight piece the maximum is at an end. On a concave one it is where the derivative is `s`:
        halvings keep that place in a bracket `[a, b]`, and the tangent at `a` bounds the piece up to `b`.
        """
        lower = lower + 0.0  # the reciprocal of a negative zero would be negative

        def height(values: Tensor) -> Tensor:
            return sign * (self.function(values) - slopes * values)

        best = torch.maximum(height(lower), height(upper))
        begin = -math.inf
        for piece in self.pieces:
            low, high = lower.clamp(min=begin).minimum(upper), upper.clamp(max=piece.end).maximum(lower)
            begin, inside = piece.end, low < high
            if not inside.any():
                continue
            best = torch.where(inside, best.maximum(height(low)).maximum(height(high)), best)
            if sign * piece.bend < 0:
                for _ in range(HALVINGS):
                    middle = (low + high) / 2
                    rises = sign * (piece.slope(middle) - slopes) >= 0
                    low, high = torch.where(rises, middle, low), torch.where(rises, high, middle)
                top = height(low) + (sign * (piece.slope(low) - slopes)).clamp(min=0) * (high - low)
                best = torch.where(inside, best.maximum(top), best)
        return best if self.start == -math.inf else best.masked_fill(lower < self.start, torch.nan)

    def choose_slopes(self, lower: Tensor, upper: Tensor, sign: int) -> Tensor:
        """Return slopes of lines above (`sign` 1) or below (-1) that leave little area, `[B, *shape]`.

        A line's area is its height in the middle, where the best one touches the concave hull: a tangent or chord
        where the whole interval bends in one direction; otherwise the edge of the hull of sampled points.
        """
        centre = (lower + upper) / 2
        width = torch.where(upper - lower > NARROW, upper - lower, 1.0)
        tangent = self.slope(centre)
        if len(self.pieces) == 1:
            chord = (self.function(upper) - self.function(lower)) / width
            slopes = tangent if self.pieces[0].bend * sign < 0 else chord
        else:
            shares = torch.arange(1, POINTS + 1, dtype=lower.dtype, device=lower.device) / (2 * POINTS)
            steps = shares * width[..., None]
            centre_value = self.function(centre)[..., None]
            falls = sign * (centre_value - self.function(centre[..., None] - steps))
            rises = sign * (self.function(centre[..., None] + steps) - centre_value)
            # The hull's height in the middle over the function there, for each pair of points.
            left_steps, right_steps = steps[..., :, None], steps[..., None, :]
            gain = (rises[..., None, :] * left_steps - falls[..., :, None] * right_steps) / (left_steps + right_steps)
            largest_gain, place = gain.flatten(-2).max(dim=-1, keepdim=True)
            edges = (rises[..., None, :] + falls[..., :, None]) / (left_steps + right_steps)
            edge = edges.flatten(-2).gather(-1, place)[..., 0]
            left_slope, right_slope = (falls / steps).min(dim=-1).values, (rises / steps).max(dim=-1).values
            slopes = sign * torch.where(largest_gain[..., 0] > 0, edge, (left_slope + right_slope) / 2)
        return torch.where(upper - lower > NARROW, slopes, tangent)


def _pieces(*parts: tuple[float, int, Function]) -> tuple[Piece, ...]:
    return tuple(Piece(*part) for part in parts)


def _line(slope: float) -> Function:
    return lambda values: torch.full_like(values, slope)


def _gelu_slope(values: Tensor) -> Tensor:
    return torch.special.ndtr(values) + values * (torch.exp(-values.square() / 2) / math.sqrt(2 * math.pi))


def _gelu_tanh_slope(values: Tensor) -> Tensor:
    scale = math.sqrt(2 / math.pi)
    tanh = torch.tanh(scale * (values + 0.044715 * values**3))
    return (1 + tanh) / 2 + values / 2 * (1 - tanh.square()) * scale * (1 + 3 * 0.044715 * values.square())


def _silu_slope(values: Tensor) -> Tensor:
    share = torch.sigmoid(values)
    return share + values * share * torch.sigmoid(-values)


def _mish_slope(values: Tensor) -> Tensor:
    tanh = torch.tanh(functional.softplus(values))
    return tanh + values * (1 - tanh.square()) * torch.sigmoid(values)


def _dented(function: Function, slope: Function, low: float, high: float) -> Curve:
    """Return a curve that is convex between two points of inflection and concave outside them."""
    return Curve(function, _pieces((low, -1, slope), (high, 1, slope), (math.inf, -1, slope)))


def _bent(function: Function, bend: int, slope: Function, start: float = -math.inf, rising: bool = False) -> Curve:
    return Curve(function, _pieces((math.inf, bend, slope)), start, rising)


def _gelu(approximate: str = "none") -> Curve:
    if approximate == "tanh":
        inflection = 1.4185040087908283555
        return _dented(lambda y: functional.gelu(y, approximate="tanh"), _gelu_tanh_slope, -inflection, inflection)
    return _dented(functional.gelu, _gelu_slope, -math.sqrt(2), math.sqrt(2))


def _elu(alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Curve:
    if min(alpha, scale, input_scale) <= 0:
        raise UnsupportedLayer(f"elu with factors {alpha}, {scale}, {input_scale}")
    return Curve(
        lambda y: scale * torch.where(y > 0, y, alpha * torch.expm1(input_scale * y.clamp(max=0))),
        _pieces(
            (0.0, 1, lambda y: scale * alpha * input_scale * torch.exp(input_scale * y.clamp(max=0))),
            (math.inf, 0, _line(scale)),
        ),
        rising=True,
    )


def _softplus(beta: float = 1.0, threshold: float = 20.0) -> Curve:
    # Above its threshold PyTorch's softplus is the identity, which differs by less than 3e-9 / beta from 20 on.
    if beta <= 0 or threshold < 20:
        raise UnsupportedLayer(f"softplus with beta {beta} and threshold {threshold}")
    return _bent(
        lambda y: functional.softplus(y * beta, 1, 1000) / beta, 1, lambda y: torch.sigmoid(beta * y), rising=True
    )


def _clamp(low: Any = None, high: Any = None) -> Curve:
    if any(isinstance(end, Tensor) and end.numel() != 1 for end in (low, high)):
        raise UnsupportedLayer("clamp with an end for each number")
    minimum, maximum = (-math.inf if low is None else float(low)), (math.inf if high is None else float(high))
    if minimum > maximum:
        raise UnsupportedLayer(f"clamp to [{minimum}, {maximum}]")
    parts = [(maximum, 0, _line(1.0))]
    parts = [(minimum, 0, _line(0.0)), *parts] if minimum > -math.inf else parts
    parts = [*parts, (math.inf, 0, _line(0.0))] if maximum < math.inf else parts
    return Curve(lambda y: y.clamp(minimum, maximum), _pieces(*parts), rising=True)


def _power(exponent: float) -> Curve:
    if isinstance(exponent, Tensor) and exponent.numel() != 1:
        raise UnsupportedLayer("pow with an exponent for each number")
    name = {0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}.get(float(exponent))
    if name is not None:
        return CURVES[name]()
    if float(exponent) != int(exponent) or exponent < 1:
        raise UnsupportedLayer(f"pow with exponent {float(exponent):g}")
    degree = int(exponent)

    def slope(values: Tensor) -> Tensor:
        return degree * values ** (degree - 1)

    def function(values: Tensor) -> Tensor:
        return values**degree

    if degree % 2 == 0 or degree == 1:
        return _bent(function, int(degree > 1), slope, rising=degree == 1)
    return Curve(function, _pieces((0.0, -1, slope), (math.inf, 1, slope)), rising=True)


def _odd(function: Function, slope: Function) -> Curve:
    """Return a curve that is convex below 0 and concave above."""
    return Curve(function, _pieces((0.0, 1, slope), (math.inf, -1, slope)), rising=True)


CURVES: dict[str, Callable[..., Curve]] = {
    "abs": lambda: Curve(torch.abs, _pieces((0.0, 0, _line(-1.0)), (math.inf, 0, _line(1.0)))),
    "clamp": _clamp,
    "clamp_max": lambda high: _clamp(None, high),
    "clamp_min": _clamp,
    "elu": _elu,
    "erf": lambda: _odd(torch.erf, lambda y: 2 / math.sqrt(math.pi) * torch.exp(-y.square())),
    "exp": lambda: _bent(torch.exp, 1, torch.exp, rising=True),
    "gelu": _gelu,
    "hardsigmoid": lambda: Curve(
        functional.hardsigmoid,
        _pieces((-3.0, 0, _line(0.0)), (3.0, 0, _line(1 / 6)), (math.inf, 0, _line(0.0))),
        rising=True,
    ),
    "hardswish": lambda: Curve(
        functional.hardswish,
        _pieces((-3.0, 0, _line(0.0)), (3.0, 1, lambda y: (2 * y + 3) / 6), (math.inf, 0, _line(1.0))),
    ),
    "hardtanh": lambda low=-1.0, high=1.0: _clamp(low, high),
    "leaky_relu": lambda slope=0.01, *_: Curve(
        lambda y: functional.leaky_relu(y, slope), _pieces((0.0, 0, _line(slope)), (math.inf, 0, _line(1.0)))
    ),
    "log": lambda: _bent(torch.log, -1, lambda y: 1 / y, 0.0, rising=True),
    "log_sigmoid": lambda: _bent(functional.logsigmoid, -1, lambda y: torch.sigmoid(-y), rising=True),
    "mish": lambda: _dented(functional.mish, _mish_slope, -2.25637639636079312, 1.4905711794854284593),
    "pow": _power,
    "reciprocal": lambda: _bent(torch.reciprocal, 1, lambda y: -1 / y.square(), 0.0),
    "relu6": lambda: _clamp(0.0, 6.0),
    "rsqrt": lambda: _bent(torch.rsqrt, 1, lambda y: -0.5 * y**-1.5, 0.0),
    "selu": lambda: _elu(1.6732632423543772848170429916717, 1.0507009873554804934193349852946),
    "silu": lambda: _dented(functional.silu, _silu_slope, -2.3993572805154676678, 2.3993572805154676678),
    "softplus": _softplus,
    "sqrt": lambda: _bent(torch.sqrt, -1, lambda y: 0.5 / y.sqrt(), 0.0, rising=True),
}
