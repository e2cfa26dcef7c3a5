"""Which features are changed (L0): until another class wins, then swapped at ever smaller counts, and put back."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.estimate import COUNT
from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.nearest import Attack
from brittle.measure.nearest.norms import ends_downhill, fewest
from brittle.measure.nearest.rays import segments
from brittle.measure.nearest.search import Found, Response, Search


def blocks(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    """Put back features of the nearest input known, in blocks: without gradients, for networks that have none.

    The features stand in the order of the size of their change. See `put_back`. Where nothing is known, fixed far
    inputs are tried first (`segments`).
    """
    segments(search, found, effort, rows[search.best.distance[rows].isinf()])
    known = rows[search.best.distance[rows].isfinite()]
    points = search.best.points[known]
    _put_back(search, known, points, (points - search.origin[known]).abs(), effort.queries)


def put_back(search: Search, found: Found, rows: Tensor, passes: int) -> None:
    """Put features of what was `found` back as they were, as long as another class wins.

    The features stand in the order of what their change does to first order, `|g_i d_i|`, the least first. A block of
    them is put back at once; twice as many are tried after a success, half as many after a failure; a feature that
    fails alone stays changed. Each point may spend so many forward passes.
    """
    known = rows[found.distance[rows].isfinite()]
    points, targets = found.points[known], found.predicted[known]
    slope = search.differentiate(known, points, targets).gradient
    _put_back(search, known, points, (slope * (points - search.origin[known])).abs(), passes)


def _put_back(search: Search, rows: Tensor, points: Tensor, weight: Tensor, passes: int) -> None:
    origin = search.origin[rows]
    changed = points != origin
    places = ranks(torch.where(changed, weight, torch.inf))
    count = changed.sum(dim=1)
    first, size = torch.zeros_like(count), (count // 2).clamp_min(1)
    for _ in range(passes):
        live = (first < count).nonzero()[:, 0]
        if not len(live):
            break
        begin, end = first[live, None], (first + size)[live, None]
        block = (places[live] >= begin) & (places[live] < end) & changed[live]
        tried = torch.where(block, origin[live], points[live])
        good = search.look(rows[live], tried) < 0
        points[live[good]] = tried[good]
        alone = size[live] == 1
        first[live] += torch.where(good, size[live], torch.where(alone, 1, 0))
        size[live] = torch.where(good, 2 * size[live], (size[live] // 2).clamp_min(1))


def ranks(values: Tensor) -> Tensor:
    """The place of each value of a row in its ascending order, the first of equal ones first, `[R, n]`."""
    order = values.argsort(dim=1, stable=True)
    places = torch.arange(order.shape[1], device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


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


EXCHANGE, BLOCKS = Attack(exchange, (COUNT,), 5), Attack(blocks, (COUNT,), 6, guided=False)
"""The attacks of this file."""
