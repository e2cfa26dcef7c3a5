"""DDN: decouple the direction of the perturbation from its norm (L2 only)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.search import Found, Search

CHANGE = 0.05
"""The paper's gamma: relative change of the norm after each step."""

FIRST, LAST = 1.0, 0.01
"""First and last length of a step, as a share of the norm."""

TINY = 1e-30


def ddn(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    """Follow the gradient of a margin; shorten the perturbation where it suffices, lengthen it elsewhere.

    `d <- d - s norm u`, then `d` is brought to length `norm`, which changes by the factor 0.95 or 1.05; `u` is the
    unit gradient of `z_t - z_j`, `j` a near competitor, and `s` falls from 1 to 0.01 along a cosine. Three departures
    from the paper: nothing is quantised; the first norm is the linearised distance, so the attack has no unit of its
    own; and the loss is a margin, which makes it exact for linear models.

    Source: Rony et al., Decoupling direction and norm for efficient gradient-based L2 adversarial attacks and defenses
    (CVPR 2019), algorithm 1.
    """
    rows, targets, norm = search.rivals(rows, effort.refine_targets)
    origin = points = search.origin[rows]
    for number in range(effort.ddn_steps):
        step = LAST + (FIRST - LAST) * (1 + math.cos(math.pi * number / effort.ddn_steps)) / 2
        response = search.differentiate(rows, points, targets)
        norm = torch.where(response.flipped, (1 - CHANGE) * norm, (1 + CHANGE) * norm)
        moved = response.points - origin - _of_length(search, response.gradient, step * norm)
        points = origin + _of_length(search, moved, norm)
    search.look(rows, points)
    search.bisect(found, effort.halvings)


def _of_length(search: Search, vectors: Tensor, length: Tensor) -> Tensor:
    return vectors * (length / search.norm.length(vectors).clamp_min(TINY)).to(vectors)[:, None]
