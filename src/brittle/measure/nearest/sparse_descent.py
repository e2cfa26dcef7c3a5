"""Sparse descent (L1): projected gradient descent whose steps move few coordinates, from many starts."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.search import FAR, Found, Response, Search
from brittle.measure.nearest.taxicab import into_box_and_ball

POWER = (3.0, 3.0)
MOMENTUM = 0.0
STEP, CHANGE = (20.0, 0.1), (0.4, 0.0005)
FINE_STEP, FINE_CHANGE = (2.5, 0.025), (0.1, 0.0005)
TINY = 1e-30


def sparse_descent(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    for start in range(effort.sparse_starts):
        targeted, rivals, linear = search.rivals(rows, effort.scouts if start == 0 else effort.targets)
        points = _start(search, targeted, start)
        _descend(search, STEP, CHANGE, effort.sparse_steps, targeted, rivals, points, linear)
    search.bisect(found, effort.halvings)
    targeted, rivals, linear = search.rivals(rows, effort.refine_targets)
    known = search.best.distance[targeted]
    near = known <= FAR * linear
    radius = torch.where(near, known, linear)
    start = torch.where(near[:, None], search.best.points[targeted], search.origin[targeted])
    _descend(search, FINE_STEP, FINE_CHANGE, effort.sparse_fine, targeted, rivals, start, radius)
    search.bisect(found, effort.halvings)


def _start(search, rows, number):
    origin = search.origin[rows]
    if number == 0:
        return origin
    if number == 1:
        return search.bounds.clip(origin - (search.best.points[rows] - origin))
    gen = torch.Generator().manual_seed(number)
    p = torch.randint(0, 2, (origin.shape[1],), generator=gen).to(origin) * 2 - 1
    offset = search.best.points[rows] - origin
    size = 4 * search.norm.length(offset) / len(p)
    return search.bounds.clip(origin + size.to(origin)[:, None] * p)


def _descend(search, steps_ends, changes, steps, rows, targets, points, radius) -> None:
    origin = search.origin[rows]
    low, high = search.bounds.ends(origin)
    best = torch.full_like(radius, torch.inf)
    heading = torch.zeros_like(points)
    for number in range(steps):
        share = number / max(1, steps - 1)
        step, change = (a * (b / a) ** share for a, b in (steps_ends, changes))
        response = search.differentiate(rows, points, targets)
        length = search.norm.length(response.points - origin)
        best = torch.where(response.flipped, torch.minimum(best, length), best)
        radius = _next_radius(search, best, rows, response, radius, change, length)
        gradient = _free(response, low, high)
        gradient = gradient / gradient.abs().amax(dim=1, keepdim=True).clamp_min(TINY)
        heading = MOMENTUM * heading + gradient
        moved = response.points - (step * radius).to(points)[:, None] * _sparse(heading, POWER[0] + (POWER[1]-POWER[0])*share)
        points = origin + into_box_and_ball(moved - origin, radius, low - origin, high - origin)
    search.look(rows, points)


def _next_radius(search, best, rows, response, radius, change, length) -> Tensor:
    boundary = length + response.margin / search.norm.dual(response.gradient).clamp_min(TINY)
    shrunk = torch.minimum(torch.minimum(radius, length) * (1 - change), boundary.clamp_min(0.5 * length))
    grown = torch.minimum(radius * (1 + change), best * (1 - CHANGE[1]))
    towards = boundary.clamp(1.05 * radius, 1.5 * radius)
    return torch.where(response.flipped, shrunk, torch.where(best > FAR * radius, towards, grown)).nan_to_num(
        posinf=1 / TINY
    )


def _free(response: Response, low, high) -> Tensor:
    gradient = response.gradient
    stuck = ((gradient > 0) & (response.points <= low)) | ((gradient < 0) & (response.points >= high))
    return torch.where(stuck, 0, gradient)


def _sparse(heading: Tensor, power: float) -> Tensor:
    relative = heading / heading.abs().amax(dim=1, keepdim=True).clamp_min(TINY)
    direction = relative.sign() * relative.abs() ** power
    return direction / direction.abs().sum(dim=1, keepdim=True).clamp_min(TINY)
