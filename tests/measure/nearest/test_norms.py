"""Projections on balls, alone and inside the bounds."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import linprog

from brittle.measure.nearest.norms import NORMS
from brittle.measure.nearest.sparse_descent import into_box_and_ball


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
