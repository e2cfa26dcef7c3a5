"""Sigma-zero (L0): descend on a smooth count of the features that change, then put back those that need not."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.features import put_back
from brittle.measure.nearest.search import Found, Search

SIGMA = 1e-3
"""Width of the smooth count `sum u^2 / (u^2 + sigma)`."""

THRESHOLD, CHANGE = 0.3, 0.01
"""The first threshold below which a change is no change, and by how much it moves after each step."""

FIRST, LAST = 1.0, 0.1
"""First and last length of a step along a cosine, as shares of the range of a feature."""

DECAYS = (0.9, 0.999)
"""Of the averages of the gradient and its square."""

TINY = 1e-12


def sigma_zero(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    """Targeted descent on `max(z_t - z_j, 0) + mean_i u_i^2 / (u_i^2 + sigma)`, `u` the change in shares of the range.

    Gradients are divided by their largest coordinate, and steps are those of Adam; then `u` is brought into the bounds
    and its coordinates below a threshold are set to 0. The threshold rises where another class wins and falls
    elsewhere. At the end features are put back one by one while another class wins (`features.put_back`). Departures
    from the paper: the loss is targeted, and features are put back.

    Source: Cina et al., Sigma-zero: gradient-based optimization of l0-norm adversarial examples (ICLR 2025), algorithm
    1.
    """
    rows_of, targets, _ = search.rivals(rows, effort.zero_targets)
    _descend(search, effort.zero_steps, rows_of, targets)
    put_back(search, found, rows, effort.back_passes)


def _descend(search: Search, steps: int, rows: Tensor, targets: Tensor) -> None:
    origin = search.origin[rows]
    low, high = (torch.as_tensor(end).to(origin).expand_as(origin) for end in search.bounds.ends(origin))
    span = high - low
    change = torch.zeros_like(origin)
    threshold = torch.full_like(rows, THRESHOLD, dtype=origin.dtype)[:, None]
    mean, square = torch.zeros_like(origin), torch.zeros_like(origin)
    size = origin.shape[1]
    for number in range(steps):
        response = search.differentiate(rows, _moved(origin, change, span), targets)
        slope = torch.where((response.margin > 0)[:, None], response.gradient * span, 0)
        slope = slope + 2 * SIGMA * change / (change.square() + SIGMA).square() / size
        slope = slope / slope.abs().amax(dim=1, keepdim=True).clamp_min(TINY)
        mean, square = (
            decay * average + (1 - decay) * value
            for decay, average, value in zip(DECAYS, (mean, square), (slope, slope.square()), strict=True)
        )
        corrected = mean / (1 - DECAYS[0] ** (number + 1)), square / (1 - DECAYS[1] ** (number + 1))
        share = (1 + math.cos(math.pi * number / steps)) / 2
        length = LAST + (FIRST - LAST) * share
        change = change - length * corrected[0] / (corrected[1].sqrt() + TINY)
        change = torch.minimum(torch.maximum(change * span, low - origin), high - origin) / span.clamp_min(TINY)
        sign = torch.where(response.flipped, 1.0, -1.0).to(origin)[:, None]
        threshold = (threshold + sign * CHANGE * share).clamp(0, 1)
        change = torch.where(change.abs() > threshold, change, 0)
    search.look(rows, _moved(origin, change, span))


def _moved(origin: Tensor, change: Tensor, span: Tensor) -> Tensor:
    """The inputs after a change; where there is none exactly as they were."""
    return torch.where(change == 0, origin, origin + change * span)
