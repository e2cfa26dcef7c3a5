"""APGD: projected gradient descent on the margin in a ball whose radius is searched for on the way."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.patterns import coarse_signs
from brittle.measure.nearest.search import FAR, Found, Response, Search

TINY = 1e-30


@dataclass(frozen=True)
class Schedule:
    """How steps and radii shrink, geometrically from the first step to the last.

    Attributes:
        step: first and last length of a step, as a share of the radius.
        change: first and last relative change of the radius.
        momentum: the share of the direction of a step that goes on in the next.
    """

    step: tuple[float, float]
    change: tuple[float, float]
    momentum: float

    def at(self, share: float) -> tuple[float, float]:
        """Step and change after the share `share` of all steps."""
        return _between(self.step, share), _between(self.change, share)


EXPLORE = Schedule(step=(4.0, 0.02), change=(0.4, 0.0005), momentum=0.0)
"""Wide steps across the ball, which leave poor local minima."""

REFINE = Schedule(step=(2.0, 0.01), change=(0.2, 0.0005), momentum=0.75)
"""Steps around the nearest input that is known, along what several gradients agree on: where pieces of the network
meet, each gradient alone leads across the kink and back."""

OUTSIDE = 4.0
"""How many times as far as the nearest input found a fixed start is."""

CELLS = (10**9, 7, 4)
"""Cells along an axis of the signs of fixed starts, in turn; the first has a sign for every value."""


def apgd(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    """Targeted projected gradient descent on `z_t - z_j` with the radius searched for by each row on its way.

    Each step goes along the steepest direction of the norm and is projected on a ball around the point. While nothing
    near was found the radius follows the linearised distance; later it shrinks below every such input, and grows again,
    up to what the point has already, where the step left none. Steps and changes of the radius shrink geometrically.
    First a few wide steps towards each of many competitors from the point itself, then towards those that were reached
    nearest from other starts, each as if nothing had been found before: short descents from many starts find nearer
    inputs than long ones from few. Then, towards few competitors, more steps with momentum from the nearest input that
    any attack has found, unless that is far.

    Sources: Croce and Hein, Reliable evaluation of adversarial robustness with an ensemble of diverse parameter-free
    attacks (ICML 2020), section 4 (targeted loss, ball, box); Pintor et al., Fast minimum-norm adversarial attacks
    through adaptive norm constraints (NeurIPS 2021), algorithm 1 (the radius); Dong et al., Boosting adversarial
    attacks with momentum (CVPR 2018), algorithm 1 (momentum of gradients of length one).
    """
    for start in effort.starts:
        _scout(search, effort, rows, start)
    search.bisect(found, effort.halvings)
    targeted, rivals, linear = search.rivals(rows, effort.refine_targets)
    known = search.best.distance[targeted]
    near = known <= FAR * linear
    radius = torch.where(near, known, linear)
    start = torch.where(near[:, None], search.best.points[targeted], search.origin[targeted])
    _descend(search, search.best, REFINE, effort.refine_steps, targeted, rivals, start, radius)
    search.bisect(found, effort.halvings)


def _scout(search: Search, effort: Effort, rows: Tensor, start: int) -> None:
    """A few steps towards each competitor from a start, for which nothing counts that was found from another.

    Where nothing was found, each start begins with a ball twice as wide.
    """
    targeted, rivals, radius = search.rivals(rows, effort.targets if start else effort.scouts)
    points, known = _start(search, targeted, start), search.best.distance[targeted]
    if start:
        radius = torch.where(known.isfinite(), radius.clamp(known / FAR, known), 2**start * radius)
    with search.anew() as found:
        _descend(search, found, EXPLORE, effort.scout_steps, targeted, rivals, points, radius)


def _start(search: Search, rows: Tensor, number: int) -> Tensor:
    """Where descents begin: the point, the reflection of the nearest input found, or a fixed pattern, `[R, n]`."""
    origin = search.origin[rows]
    if number == 0:
        return origin
    offset = search.best.points[rows] - origin
    if number == 1:
        return search.bounds.clip(origin - offset)
    generator = torch.Generator().manual_seed(number)
    signs = coarse_signs(search.shape, CELLS[number % len(CELLS)], generator).to(origin)
    length = OUTSIDE * search.norm.length(offset) / search.norm.length(signs[None])
    return search.bounds.clip(origin + length.to(origin)[:, None] * signs)


def _descend(
    search: Search,
    found: Found,
    schedule: Schedule,
    steps: int,
    rows: Tensor,
    targets: Tensor,
    points: Tensor,
    radius: Tensor,
) -> None:
    """`steps` steps of each row of `rows` from `points`, `[R, n]`, and `radius`, `[R]`, below what is `found`."""
    origin = search.origin[rows]
    heading = torch.zeros_like(points)
    for number in range(steps):
        step, change = schedule.at(number / max(1, steps - 1))
        response = search.differentiate(rows, points, targets)
        radius = _next_radius(search, found, rows, response, radius, change)
        steepness = search.norm.dual(response.gradient).clamp_min(TINY).to(points)[:, None]
        heading = schedule.momentum * heading + response.gradient / steepness
        moved = response.points - (step * radius).to(points)[:, None] * _unit(search, heading)
        points = origin + search.norm.into_ball(moved - origin, radius)
    search.look(rows, points)


def _next_radius(
    search: Search, found: Found, rows: Tensor, response: Response, radius: Tensor, change: float
) -> Tensor:
    """The radius of the next step, `[R]`."""
    length, best = search.norm.length(response.points - search.origin[rows]), found.distance[rows]
    boundary = length + response.margin / search.norm.dual(response.gradient).clamp_min(TINY)
    shrunk = torch.minimum(torch.minimum(radius, length) * (1 - change), boundary.clamp_min(0.5 * length))
    grown = torch.minimum(radius * (1 + change), best * (1 - EXPLORE.change[1]))
    towards = boundary.clamp(1.05 * radius, 1.5 * radius)
    return torch.where(response.flipped, shrunk, torch.where(best > FAR * radius, towards, grown)).nan_to_num(
        posinf=1 / TINY
    )


def _unit(search: Search, gradient: Tensor) -> Tensor:
    """The steepest direction at length one."""
    direction = search.norm.steepest(gradient)
    return direction / search.norm.length(direction).clamp_min(TINY).to(direction)[:, None]


def _between(ends: tuple[float, float], share: float) -> float:
    first, last = ends
    return first * (last / first) ** share
