"""How far a linear function stays positive, against all corners of the box."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from brittle.measure.certified.region import Region
from brittle.model.bounds import Bounds

COUNT, SIZE = 60, 3


def functions() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(COUNT, SIZE, generator=generator, dtype=torch.float64)
    gradients = torch.randn(2, COUNT, SIZE, generator=generator, dtype=torch.float64)
    gradients[:, ::7, 0] = 0.0
    gradients[1, ::11] = 0.0
    constants = torch.randn(2, COUNT, generator=generator, dtype=torch.float64) + 0.5
    return points, constants, gradients


def least(point: Tensor, constant: Tensor, gradient: Tensor, radius: Tensor) -> float:
    """The least value on the corners of the box of `radius` inside [0, 1]."""
    ends = zip((point - radius).clamp(min=0), (point + radius).clamp(max=1), strict=True)
    return min(float(constant + gradient @ (torch.stack(corner) - point)) for corner in product(*ends))


def test_a_linear_function_is_positive_up_to_its_reach_and_no_farther() -> None:
    points, constants, gradients = functions()
    region = Region.around(points, torch.ones(COUNT, dtype=torch.float64), "linf", Bounds.of((0.0, 1.0)))
    reach = region.reach(constants, gradients)
    finite = 0
    for kind, row in product(range(2), range(COUNT)):
        found, one = reach[kind, row], (points[row], constants[kind, row], gradients[kind, row])
        if constants[kind, row] <= 0:
            assert found == 0
        elif found.isinf():
            assert least(*one, torch.tensor(1.0)) > 0
        else:
            finite += 1
            assert least(*one, found * (1 - 1e-9)) > 0
            assert least(*one, found * (1 + 1e-9)) <= 1e-12
    assert finite > COUNT / 2
