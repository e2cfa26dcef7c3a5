"""Projections onto a decision boundary inside the bounds, in every norm."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from brittle.measure.nearest.norms import NORMS
from brittle.measure.nearest.taxicab import into_box_and_ball


@pytest.mark.parametrize("norm", NORMS)
def test_projection_inside_the_box_is_the_nearest_point(norm: str) -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(50, 6, generator=generator, dtype=torch.float64)
    gradient = torch.randn(50, 6, generator=generator, dtype=torch.float64)
    room = torch.where(gradient > 0, points, 1 - points)
    drop = torch.rand(50, generator=generator, dtype=torch.float64) * (gradient.abs() * room).sum(dim=1)
    projected = NORMS[norm].onto_plane(points, gradient, drop, 0.0, 1.0)
    assert ((projected >= 0) & (projected <= 1)).all()
    torch.testing.assert_close(((points - projected) * gradient).sum(dim=1), drop)
    length = NORMS[norm].length(projected - points)
    for row in range(50):
        oracle = {"linf": _oracle_linf, "l2": _oracle_l2, "l1": _oracle_l1}[norm](points[row], gradient[row], drop[row])
        assert float(length[row]) == pytest.approx(oracle, rel=1e-6)


def _oracle_linf(point: Tensor, gradient: Tensor, drop: Tensor) -> float:
    """Minimise `r` over `(d, r)` with `|d| <= r`, `gradient . d = -drop`, `0 <= point + d <= 1`."""
    size = len(point)
    eye = torch.eye(size, dtype=torch.float64)
    below = torch.cat((torch.cat((eye, -eye)), -torch.ones(2 * size, 1, dtype=torch.float64)), dim=1)
    equal = torch.cat((gradient, torch.zeros(1, dtype=torch.float64)))[None]
    limits = [(-float(value), 1 - float(value)) for value in point]
    cost = [0.0] * size + [1.0]
    found = linprog(cost, below.numpy(), [0.0] * 2 * size, equal.numpy(), [-float(drop)], [*limits, (0, None)])
    return float(found.fun)


def _oracle_l1(point: Tensor, gradient: Tensor, drop: Tensor) -> float:
    """Minimise `sum(u + v)` over `u, v >= 0`, `d = u - v`, with `gradient . d = -drop`, `0 <= point + d <= 1`."""
    limits = [(0, 1 - float(value)) for value in point] + [(0, float(value)) for value in point]
    equal = torch.cat((gradient, -gradient))[None].numpy()
    return float(linprog([1.0] * 2 * len(point), A_eq=equal, b_eq=[-float(drop)], bounds=limits).fun)


def _oracle_l2(point: Tensor, gradient: Tensor, drop: Tensor) -> float:
    """Bisection on the multiplier: `d = clip(-l gradient)` falls by more, the larger `l` is."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        moved = (point - middle * gradient).clamp(0, 1)
        low, high = (middle, high) if float((point - moved) @ gradient) < float(drop) else (low, middle)
    return float(((point - high * gradient).clamp(0, 1) - point).norm())


@pytest.mark.parametrize("norm", NORMS)
def test_projection_out_of_reach_is_the_corner(norm: str) -> None:
    points, gradient = torch.tensor([[0.25, 0.5]]), torch.tensor([[1.0, -2.0]])
    projected = NORMS[norm].onto_plane(points, gradient, torch.tensor([9.0]), 0.0, 1.0)
    assert projected.tolist() == [[0.0, 1.0]]
    still = NORMS[norm].onto_plane(points, 0 * gradient, torch.tensor([9.0]), 0.0, 1.0)
    assert still.tolist() == points.tolist()


@pytest.mark.parametrize("boxed", [True, False])
def test_projection_on_the_l1_ball_is_the_nearest_point(boxed: bool) -> None:
    """No point of the ball and the box is nearer: `(v - p) . (q - p) <= 0` for its farthest `q` along `v - p`."""
    generator = torch.Generator().manual_seed(0)
    vectors = 2 * torch.randn(40, 6, generator=generator, dtype=torch.float64)
    radius = 4 * torch.rand(40, generator=generator, dtype=torch.float64)
    ends = torch.rand(2, 40, 6, generator=generator, dtype=torch.float64) if boxed else torch.full((2, 40, 6), 1e9)
    project = into_box_and_ball(vectors, radius, -ends[0], ends[1]) if boxed else NORMS["l1"].into_ball(vectors, radius)
    assert (project.abs().sum(dim=1) <= radius * (1 + 1e-9)).all()
    assert ((project >= -ends[0]) & (project <= ends[1])).all()
    for row in range(40):
        away = (vectors[row] - project[row]).numpy()
        limits = [(0, float(one)) for one in ends[1, row]] + [(0, float(one)) for one in ends[0, row]]
        farthest = linprog([*-away, *away], [[1.0] * 12], [float(radius[row])], bounds=limits)
        assert -farthest.fun <= float(away @ project[row].numpy()) + 1e-6
