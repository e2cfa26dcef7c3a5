"""Which features of an input need not change (L0): put back, one by one or in blocks."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.search import Found, Search
from brittle.measure.nearest.segments import segments


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
    fails alone stays changed.

    Args:
        rows: indices of points, `[R]`.
        passes: how many forward passes each may spend.
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
