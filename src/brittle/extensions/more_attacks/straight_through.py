"""Straight-through gradients: descend where steps inside the network leave none, by those of smooth stand-ins."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.nearest import Attack
from brittle.measure.nearest.norms import NORMS
from brittle.measure.nearest.search import Found, Search

WIDTHS = (1.0, 0.3, 0.1, 0.05)
"""Widths of the stand-ins, one descent after another, as shares of the root mean square of a step's input."""

STEP, CHANGE = (1.0, 0.05), (0.2, 0.002)
"""First and last length of a step, as a share of the radius, and first and last relative change of the radius."""

BELOW = 0.9995  # largest radius, as a share of the smallest distance so far


def straight_through(search: Search, nearest: Found, effort: Effort, rows: Tensor) -> None:
    """Projected descent on `z_t - z_j`, with stand-ins for steps inside the network in the backward pass only.

    Where the network computes `sign`, `round` or a comparison, the forward pass gives exactly that, and the backward
    pass the derivative of a smooth function in its place (`StandIns`). Every descent starts from the nearest input
    so far and has its own width of the stand-ins; the radius shrinks where another class won and grows where none did.
    Where the first of `rows` meets no such operation, the attack ends after one forward and one backward pass.

    Source: Bengio, Leonard and Courville, Estimating or propagating gradients through stochastic neurons (2013),
    section 4 (straight-through estimator); Athalye, Carlini and Wagner, Obfuscated gradients give a false sense of
    security (ICML 2018), section 4.1 (backward pass differentiable approximation).
    """
    mode, first_row = StandIns(1.0), rows[:1]
    if len(first_row):
        search.differentiated(lambda: mode).differentiate(first_row, search.origin[first_row], search.own[first_row])
    if not mode.replaced:
        return
    for number in range(effort.smooth_rounds):
        width = WIDTHS[number % len(WIDTHS)]
        smooth = search.differentiated(lambda width=width: StandIns(width))
        rows_of, targets = _targets(search, rows, effort.smooth_targets)
        distances = search.best.distance[rows_of]
        start = torch.where(distances.isfinite()[:, None], search.best.points[rows_of], search.origin[rows_of])
        _descend(smooth, effort.smooth_steps, rows_of, targets, start)
        search.bisect(nearest, effort.halvings)


def _targets(search: Search, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return `count` rows of each point, one for each competitor: by distance of their wins, the others by logit."""
    classes = search.competitors[0][rows]
    order = search.by_class[rows].gather(1, classes).argsort(dim=1, stable=True)[:, :count]
    targets = classes.gather(1, order)
    return rows[:, None].expand(targets.shape).flatten(), targets.flatten()


def _descend(search: Search, steps: int, rows: Tensor, targets: Tensor, points: Tensor) -> None:
    """Take `steps` steps for each row of `rows` from `points`, `[R, n]`, inside balls below the nearest distance."""
    origin = search.origin[rows]
    radius = search.best.distance[rows]
    low, high = search.declared.reach(origin)
    radius = torch.where(radius.isfinite(), radius, search.norm.length(torch.zeros_like(origin) + (high - low) / 4))
    for number in range(steps):
        share = number / max(1, steps - 1)
        step, change = (begin * (end / begin) ** share for begin, end in (STEP, CHANGE))
        response = search.differentiate(rows, points, targets)
        smaller_radius = torch.minimum(radius, response.length) * (1 - change)
        larger_radius = torch.minimum(radius * (1 + change), BELOW * search.best.distance[rows])
        radius = torch.where(response.flipped, smaller_radius, larger_radius)
        stepped_points = search.norm.downhill(response.points, response.gradient, step * radius)
        points = search.norm.into_ball(stepped_points, origin, radius)
    search.look(rows, points)


class StandIns(TorchFunctionMode):
    """Let operations that are steps pass gradients back inside the block; their values stay, bit for bit.

    | operation | derivative in the backward pass, `s` the width |
    | --- | --- |
    | `sign`, `heaviside`, comparisons that select or become numbers | that of `tanh(x / s)` or `sigmoid(x / s)` |
    | `round`, `floor`, `ceil`, `trunc`, casts to whole numbers | 1 |
    | `tanh`, `sigmoid` | that of `tanh(x / s)` or `sigmoid(x / s)`, `s` at least 1 |
    | `softmax` of a matrix | 1: that of logits |

    `s` is a share of the root mean square of `x` in its row of the batch.
    """

    def __init__(self, width: float) -> None:
        super().__init__()
        self.width = width
        self.replaced = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        value = func(*args, **(kwargs or {}))
        stand_in = _STAND_INS.get(_name(func))
        if stand_in is None or not args or not isinstance(value, Tensor) or not torch.is_grad_enabled():
            return value
        smooth = stand_in(_Call(func, args, value, self.width))
        if smooth is None:
            return value
        self.replaced += 1
        if value.is_floating_point():
            return _WithGradient.apply(value.detach(), smooth.expand_as(value))
        setattr(value, _SMOOTH, smooth)
        return value


class _WithGradient(torch.autograd.Function):
    """A value with the gradient of another."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value: Tensor, smooth: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save nothing for the backward pass."""

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        return None, gradients[0]


_SMOOTH = "_brittle_smooth"  # attribute for the stand-in of a tensor without gradient, such as that of a comparison


@dataclass(frozen=True)
class _Call:
    func: Callable[..., Any]
    args: tuple[Any, ...]
    value: Tensor
    width: float

    def soft(self, values: Tensor, minimum: float = 0.0) -> Tensor:
        """Return `values` in units of the width, which is at least `minimum`."""
        rows = values.detach().flatten(1) if values.dim() > 1 else values.detach().reshape(-1, 1)
        scale = (self.width * rows.double().square().mean(dim=1).sqrt()).clamp_min(minimum).to(values)
        scale = torch.where(scale > 0, scale, 1)
        return values / scale.view(-1, *[1] * (values.dim() - 1)) if values.dim() else values / scale[0]


_StandIn = Callable[[_Call], Tensor | None]


def _name(func: Callable[..., Any]) -> str:
    """Return `gt` for `torch.gt`, `Tensor.__gt__` and `torch.ops.aten.gt.Scalar` alike."""
    name = getattr(func, "__name__", "").partition(".")[0]
    return name.strip("_") if name.startswith("__") else name


def _varies(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.requires_grad


def _numbers(value: Any) -> Any:
    """Return an argument as numbers that pass gradients back, safe from changes in place."""
    smooth = getattr(value, _SMOOTH, None)
    if smooth is not None:
        return _WithGradient.apply(value.to(smooth.dtype), smooth)
    return value.clone() if isinstance(value, Tensor) else value


def _first_argument(smooth: Callable[[_Call, Tensor], Tensor | None]) -> _StandIn:
    """Return the stand-in that applies `smooth` to the first argument, where that varies."""
    return lambda call: smooth(call, call.args[0]) if _varies(call.args[0]) else None


def _comparison(sign: int) -> _StandIn:
    """Return the stand-in of a comparison: the first argument (`sign` 1) or the second (-1) is the larger."""
    return lambda op: op.soft(sign * (op.args[0] - op.args[1])).sigmoid() if any(map(_varies, op.args[:2])) else None


def _cast(call: _Call) -> Tensor | None:
    is_integer = not call.value.is_floating_point() and call.value.dtype != torch.bool
    return call.args[0] if is_integer and _varies(call.args[0]) else getattr(call.args[0], _SMOOTH, None)


def _choice(call: _Call) -> Tensor | None:
    if len(call.args) < 3 or not any(hasattr(value, _SMOOTH) for value in call.args):
        return None
    condition, x, y = map(_numbers, call.args)
    return condition * x + (1 - condition) * y if hasattr(call.args[0], _SMOOTH) else None


def _arithmetic(call: _Call) -> Tensor | None:
    if not any(hasattr(value, _SMOOTH) for value in call.args):
        return None
    return call.func(*map(_numbers, call.args))


_STAND_INS: dict[str, _StandIn] = {
    **dict.fromkeys(("sign", "sgn"), _first_argument(lambda call, x: call.soft(x).tanh())),
    "heaviside": _first_argument(lambda call, x: call.soft(x).sigmoid()),
    "tanh": _first_argument(lambda call, x: call.soft(x, minimum=1.0).tanh()),
    "sigmoid": _first_argument(lambda call, x: call.soft(x, minimum=1.0).sigmoid()),
    **dict.fromkeys(("round", "floor", "ceil", "trunc", "fix"), _first_argument(lambda call, x: x)),
    "softmax": _first_argument(lambda call, x: x if call.value.dim() == 2 else None),
    **dict.fromkeys(("gt", "ge", "greater", "greater_equal"), _comparison(1)),
    **dict.fromkeys(("lt", "le", "less", "less_equal"), _comparison(-1)),
    **dict.fromkeys(("float", "double", "half", "int", "long", "to", "type", "type_as", "_to_copy", "to_copy"), _cast),
    "where": _choice,
    **dict.fromkeys(
        ("mul", "rmul", "multiply", "add", "radd", "sub", "rsub", "div", "truediv", "true_divide"), _arithmetic
    ),
}


STRAIGHT_THROUGH = Attack(straight_through, tuple(NORMS), 3, guided=False)  # the attack of this file
