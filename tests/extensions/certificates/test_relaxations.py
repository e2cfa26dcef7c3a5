"""Lines lie around their function, and ends of a box around its values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from brittle.extensions.certificates.curves import CURVES
from brittle.extensions.certificates.region import Enclosure
from brittle.extensions.certificates.relaxations import relax

FUNCTIONS: dict[str, tuple[tuple[float, ...], Callable[[Tensor], Tensor], float]] = {
    "relu": ((), torch.relu, -1e9),
    "sigmoid": ((), torch.sigmoid, -1e9),
    "tanh": ((), torch.tanh, -1e9),
    "leaky_relu": ((0.1,), lambda y: functional.leaky_relu(y, 0.1), -1e9),
    "leaky_relu:falling": ((-0.4,), lambda y: functional.leaky_relu(y, -0.4), -1e9),
    "abs": ((), torch.abs, -1e9),
    "clamp": ((-0.5, 0.8), lambda y: y.clamp(-0.5, 0.8), -1e9),
    "elu": ((2.0,), lambda y: functional.elu(y, 2.0), -1e9),
    "erf": ((), torch.erf, -1e9),
    "exp": ((), torch.exp, -1e9),
    "gelu": ((), functional.gelu, -1e9),
    "gelu:tanh": (("tanh",), lambda y: functional.gelu(y, approximate="tanh"), -1e9),  # type: ignore[dict-item]
    "hardsigmoid": ((), functional.hardsigmoid, -1e9),
    "hardswish": ((), functional.hardswish, -1e9),
    "log": ((), torch.log, 0.0),
    "log_sigmoid": ((), functional.logsigmoid, -1e9),
    "mish": ((), functional.mish, -1e9),
    "pow:2": ((2,), torch.square, -1e9),
    "pow:3": ((3,), lambda y: y * y * y, -1e9),
    "reciprocal": ((), torch.reciprocal, 0.0),
    "rsqrt": ((), torch.rsqrt, 0.0),
    "silu": ((), functional.silu, -1e9),
    "softplus": ((2.0,), lambda y: torch.logaddexp(2 * y, torch.zeros_like(y)) / 2, -1e9),
    "sqrt": ((), torch.sqrt, 0.0),
}
"""By name: constants, the function as PyTorch has it, and where its domain begins."""

KINKS = (-3.0, -2.3993572805154677, -(2**0.5), -0.5, 0.0, 0.3, 0.8, 1.0, 2**0.5, 1.4905711794854284, 3.0, 6.0)
SHARES = torch.linspace(0, 1, 41, dtype=torch.float64)


def intervals(start: float, seed: int) -> Enclosure:
    """Usual, huge, tiny and empty ones, and all between two kinks; inside a domain."""
    generator = torch.Generator().manual_seed(seed)
    ends = 4 * torch.randn(600, 2, generator=generator, dtype=torch.float64)
    ends[:20, 1] = ends[:20, 0]
    ends[20:60] *= 8
    ends[60:100, 1] = ends[60:100, 0] + 1e-11 * ends[60:100, 1]
    ends[100:160, 1] = ends[100:160, 0] + 1e-3 * ends[100:160, 1]
    kinks = torch.tensor(KINKS, dtype=torch.float64)
    ends = torch.cat((ends, torch.cartesian_prod(kinks, kinks), 1e-6 + torch.cartesian_prod(kinks, kinks)))
    if start > -1e9:
        ends = start + (ends - start).abs() + 1e-3
    return Enclosure(ends.min(dim=1).values, ends.max(dim=1).values)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_lines_and_ends_lie_around_their_function(name: str) -> None:
    constants, function, start = FUNCTIONS[name]
    operator = name.partition(":")[0]
    interval = intervals(start, seed=len(name))
    lines = relax(operator, interval, constants)
    ends = None
    if operator in CURVES:
        curve = CURVES[operator](*constants)
        ends = Enclosure(*(end(interval.lower, interval.upper) for end in (curve.lower_bound, curve.upper_bound)))
    for share in SHARES:
        values = (interval.lower + share * (interval.upper - interval.lower)).minimum(interval.upper)
        exact = function(values)
        slack = 1e-10 + 1e-12 * torch.maximum(function(interval.lower).abs(), function(interval.upper).abs())
        assert (lines.lower.at(values) <= exact + slack).all()
        assert (lines.upper.at(values) >= exact - slack).all()
        if ends is not None:
            assert (ends.lower <= exact + slack).all()
            assert (ends.upper >= exact - slack).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_lines_are_near_on_narrow_intervals(name: str) -> None:
    """Away from kinks the gap falls with the square of the width; a chord far from the function would show here."""
    constants, function, start = FUNCTIONS[name]
    middles = torch.linspace(max(start, -5.0) + 0.26, 5.0, 57, dtype=torch.float64)
    interval = Enclosure(middles - 0.005, middles + 0.005)
    lines = relax(name.partition(":")[0], interval, constants)
    gap = lines.upper.at(middles) - lines.lower.at(middles)
    scale = 1 + function(middles + 0.01).abs() + function(middles - 0.01).abs()
    assert (gap >= -1e-9 * scale).all()
    assert gap.median() <= 2e-3 * scale.median()


@pytest.mark.parametrize("name", ["log", "reciprocal", "rsqrt", "sqrt"])
def test_an_interval_outside_the_domain_has_no_bounds(name: str) -> None:
    below = torch.tensor([-3.0, -2.0, -3.0], dtype=torch.float64)
    interval = Enclosure(below, torch.tensor([-1.5, 0.0, 2.0], dtype=torch.float64))
    lines = relax(name, interval, ()).where_finite(interval)
    curve = CURVES[name]()
    for line in (lines.lower, lines.upper):
        assert not line.offset.isfinite().any()
    assert not curve.lower_bound(interval.lower, interval.upper).isfinite().any()
