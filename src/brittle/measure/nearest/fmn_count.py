"""FMN in L0: projected gradient descent that keeps the largest changes, their number searched for on the way."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.features import put_back
from brittle.measure.nearest.search import Found, Search

FIRST, LAST = 1.0, 0.01
"""First and last length of a step along a cosine, in L2 and in shares of the range of a feature."""

CHANGE, LAST_CHANGE = 0.05, 0.001
"""First and last relative change of the number of features, which is by one at least."""

TINY = 1e-12


def fmn_count(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    """Targeted descent on `z_t - z_j` that keeps the `k` largest changes, in shares of the range of each feature.

    Where another class wins, `k` falls below what changed; elsewhere it grows, at first to what the linear model of the
    margin needs, later up to less than the row has already. At the end features are put back one by one while another
    class wins (`features.put_back`).

    Source: Pintor et al., Fast minimum-norm adversarial attacks through adaptive norm constraints (NeurIPS 2021),
    algorithm 1.
    """
    rows_of, targets, _ = search.rivals(rows, effort.count_targets)
    _descend(search, effort.count_steps, rows_of, targets)
    put_back(search, found, rows, effort.count_steps)


def _descend(search: Search, steps: int, rows: Tensor, targets: Tensor) -> None:
    origin = search.origin[rows]
    low, high = (torch.as_tensor(end).to(origin).expand_as(origin) for end in search.bounds.ends(origin))
    span = high - low
    change, kept = torch.zeros_like(origin), torch.zeros_like(rows, dtype=torch.float64)
    best = torch.full_like(kept, torch.inf)
    for number in range(steps):
        share = (1 + math.cos(math.pi * number / steps)) / 2
        step, growth = (last + (first - last) * share for first, last in ((FIRST, LAST), (CHANGE, LAST_CHANGE)))
        response = search.differentiate(rows, torch.where(change == 0, origin, origin + change * span), targets)
        count = (change != 0).sum(dim=1).double()
        best = torch.where(response.flipped, torch.minimum(best, count), best)
        slope = response.gradient * span
        needed = count + (response.margin / slope.abs().amax(dim=1).double().clamp_min(TINY)).nan_to_num().clamp(1, 1e6)
        grown = torch.where(best.isinf(), torch.maximum(needed, kept + 1), (kept * (1 + growth)).minimum(best - 1))
        kept = torch.where(response.flipped, torch.minimum(count, best) * (1 - growth) - 0.5, grown).ceil()
        kept = torch.minimum(kept, best - 1).clamp(1, origin.shape[1])
        length = torch.linalg.vector_norm(slope, dim=1, keepdim=True).clamp_min(TINY)
        moved = torch.minimum(torch.maximum(origin + (change - step * slope / length) * span, low), high)
        change = (moved - origin) / span.clamp_min(TINY)
        ranks = change.abs().argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        change = torch.where(ranks < kept[:, None], change, 0)
    search.look(rows, torch.where(change == 0, origin, origin + change * span))
