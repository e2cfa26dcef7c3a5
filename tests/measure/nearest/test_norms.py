"""Projections onto a decision boundary inside the bounds, in every norm."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from brittle.measure.nearest.norms import NORMS


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
        oracle = {"linf": _oracle_linf, "l2": _oracle_l2}[norm](points[row], gradient[row], drop[row])
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
