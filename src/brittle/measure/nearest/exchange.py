"""Exchange (L0): change features until another class wins, then swap some of them at ever smaller counts."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.measure.nearest.blocks import put_back, ranks
from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.norms import ends_downhill, fewest
from brittle.measure.nearest.search import Found, Response, Search

GROWTH = 0.25
"""The share that a step adds of the features that the linear model of the margin still needs, rounded up."""

SWAPPED = 0.1
"""The share of the changed features that a step swaps for others, rounded up."""

REST = 20
"""For how many steps a feature that was just changed, or put back, stays as it is."""


def exchange(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    """Targeted search on `z_t - z_j` over which features are changed, each to the end of its bounds where that falls.

    A feature is worth what its change does to first order, `g_i (x_i - e_i)` with `e_i` that end. From the point
    itself features of the greatest worth are changed, a share of those still needed in a step, up to one fewer than in
    the nearest input known. From then on their number stays there, and each step puts those of the least worth back and
    changes others instead. What was just moved rests, so that the search leaves a set that no single swap improves.
    First towards a few competitors from the point, then towards those reached nearest from the nearest input that any
    attack has found; at the end features are put back one by one while another class wins (`blocks.put_back`).

    Sources: Papernot et al., The limitations of deep learning in adversarial settings (EuroS&P 2016), algorithm 1
    (features changed to their ends in the order of their slopes); Glover, Tabu search, part I (ORSA Journal on
    Computing 1989), section 2 (swaps with rest).
    """
    rows_of, targets, _ = search.rivals(rows, effort.grow_targets)
    _descend(search, effort.grow_steps, rows_of, targets, search.origin[rows_of])
    best = search.best.distance[rows]
    rows_of, targets, _ = search.rivals(rows[best.isfinite() & (best > 1)], effort.swap_targets)
    _descend(search, effort.swap_steps, rows_of, targets, search.best.points[rows_of])
    put_back(search, found, rows, effort.back_passes)


def _descend(search: Search, steps: int, rows: Tensor, targets: Tensor, points: Tensor) -> None:
    """`steps` steps of each row of `rows` from `points`, `[R, n]`."""
    origin = search.origin[rows]
    low, high = (torch.as_tensor(end).to(origin).expand_as(origin) for end in search.bounds.ends(origin))
    rested = torch.full_like(origin, REST, dtype=torch.int64)
    for _ in range(steps):
        response = search.differentiate(rows, points, targets)
        allowed = (search.best.distance[rows] - 1).clamp(1, origin.shape[1]).long()
        ends = ends_downhill(response.points, response.gradient, low, high)
        chosen = chosen_features(response, origin, ends, allowed, rested >= REST)
        changed = response.points != origin
        rested = torch.where(chosen == changed, rested + 1, 0)
        points = torch.where(chosen, torch.where(changed & (ends == response.points), response.points, ends), origin)
    search.look(rows, points)


def chosen_features(response: Response, origin: Tensor, ends: Tensor, allowed: Tensor, free: Tensor) -> Tensor:
    """Which features are changed next, `[R, n]`: at most `allowed`, `[R]`; those that rest are not `free`."""
    changed = response.points != origin
    count = changed.sum(dim=1)
    gain = response.gradient * (response.points - ends)
    fresh = torch.where(changed | ~free, 0, gain)
    left = response.margin - torch.where(changed, gain, 0).sum(dim=1, dtype=torch.float64)
    growing = ~response.flipped & (count < allowed)
    grown = count + (GROWTH * fewest(fresh, left)).ceil().long()
    wanted = torch.where(growing, torch.minimum(grown, allowed), allowed)
    swapped = torch.minimum((SWAPPED * wanted).ceil().long(), wanted)
    out = torch.where(growing, 0, (count - wanted + swapped).clamp_min(0))
    worth = response.gradient * (origin - response.points)
    worth = worth + torch.where(free, 0, 2 * worth.abs().amax(dim=1, keepdim=True))
    back = changed & (ranks(torch.where(changed, worth, torch.inf)) < out[:, None])
    more = wanted - count + back.sum(dim=1)
    return (changed & ~back) | ((ranks(-fresh) < more[:, None]) & (fresh > 0))
