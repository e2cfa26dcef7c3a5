"""Lines lie around their function."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from brittle.measure.certified.enclosure import Enclosure
from brittle.measure.certified.relaxations import relax


@pytest.mark.parametrize("operator", ["relu", "leaky_relu", "sigmoid", "tanh"])
def test_lines_lie_around_their_function(operator: str) -> None:
    generator = torch.Generator().manual_seed(0)
    ends = 4 * torch.randn(2000, 2, generator=generator, dtype=torch.float64)
    ends[:20, 1] = ends[:20, 0]
    interval = Enclosure(ends.min(dim=1).values, ends.max(dim=1).values)
    lines = relax(operator, interval, (0.1,) if operator == "leaky_relu" else ())
    function = {"leaky_relu": lambda y: nn.functional.leaky_relu(y, 0.1)}.get(operator) or getattr(torch, operator)
    for share in torch.linspace(0, 1, 101, dtype=torch.float64):
        values = interval.lower + share * (interval.upper - interval.lower)
        assert (lines.lower.at(values) <= function(values) + 1e-9).all()
        assert (lines.upper.at(values) >= function(values) - 1e-9).all()
