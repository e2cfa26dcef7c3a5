"""L0 inside a box: how far each feature can move a linear function, and how few suffice."""

from __future__ import annotations

import torch
from torch import Tensor


def ends_downhill(points: Tensor, gradient: Tensor, low: Tensor | float, high: Tensor | float) -> Tensor:
    """The end of the box towards which the linear function falls, feature by feature; where it is flat `points`."""
    ends = torch.where(gradient > 0, torch.zeros_like(points) + low, torch.zeros_like(points) + high)
    return torch.where(gradient == 0, points, ends)


def fewest(gains: Tensor, drop: Tensor) -> Tensor:
    """How many of `gains`, `[R, n]`, at least 0, add up to more than `drop`, `[R]`: `[R]`; `n + 1` where all do not."""
    sums = gains.sort(dim=1, descending=True).values.double().cumsum(dim=1)
    return (sums <= drop[:, None]).sum(dim=1) + 1


def ranks(values: Tensor) -> Tensor:
    """The place of each value of a row in its ascending order, the first of equal ones first, `[R, n]`."""
    order = values.argsort(dim=1, stable=True)
    places = torch.arange(order.shape[1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)
