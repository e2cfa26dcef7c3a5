"""Planes lie around softmax, and its box holds it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from brittle.extensions.certificates.region import Enclosure
from brittle.extensions.certificates.softmax import box, planes


def boxes(count: int, width: float) -> Enclosure:
    generator = torch.Generator().manual_seed(count)
    middles = 3 * torch.randn(40, count, generator=generator, dtype=torch.float64)
    widths = width * torch.rand(40, count, generator=generator, dtype=torch.float64)
    widths[:, 0] = 0
    return Enclosure(middles - widths, middles + widths)


def points(interval: Enclosure) -> Tensor:
    """Inside it, at its corners, and where one number is at an end and the others are at the other."""
    generator = torch.Generator().manual_seed(0)
    shares = torch.rand(200, *interval.lower.shape, generator=generator, dtype=torch.float64)
    shares[100:150] = shares[100:150].round()
    corners = torch.eye(interval.lower.shape[1], dtype=torch.float64)[:, None]
    corners = corners.expand(-1, len(interval.lower), -1)
    shares = torch.cat((shares, corners, 1 - corners))
    return interval.lower + shares * (interval.upper - interval.lower)


@pytest.mark.every_other
@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("width", [0.0, 1e-11, 0.01, 12.0])
@pytest.mark.parametrize("count", [1, 2, 17])
def test_planes_and_boxes_lie_around_softmax(count: int, width: float, scale: float) -> None:
    interval = boxes(count, width).map(lambda end: scale * end)
    bounding_planes, ends = planes(interval), box(interval)
    for values in points(interval):
        exact = values.softmax(1)
        below = (bounding_planes.lower @ values[..., None])[..., 0] + bounding_planes.low
        above = (bounding_planes.upper @ values[..., None])[..., 0] + bounding_planes.high
        slack = 1e-9 * (1 + bounding_planes.upper.abs().sum(-1) * values.abs().max())
        assert (below <= exact + slack).all()
        assert (above >= exact - slack).all()
        assert (ends.lower <= exact + 1e-12).all()
        assert (ends.upper >= exact - 1e-12).all()
        if scale == 1.0 and width <= 1e-11:
            torch.testing.assert_close(below, above, rtol=0, atol=1e-9)
