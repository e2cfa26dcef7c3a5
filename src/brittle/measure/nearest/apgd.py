"""APGD: projected gradient descent on the margin in a ball whose radius is searched for on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.nearest.effort import Decay, Effort, Rounds
from brittle.measure.nearest.norms import TINY
from brittle.measure.nearest.rays import coarse_signs
from brittle.measure.nearest.search import ANY, FAR, Found, Search


@dataclass(frozen=True)
class Schedule:
    """How steps and radii shrink.

    Attributes:
        step: first and last length of a step, as a share of the radius.
        decay: how steps shrink between them.
        change: first and last relative change of the radius; between them it shrinks geometrically.
        momentum: the share of the direction of a step that goes on in the next.
    """

    step: tuple[float, float]
    decay: Decay
    change: tuple[float, float]
    momentum: float

    def at(self, share: float) -> tuple[float, float]:
        """Step and change after the share `share` of all steps."""
        longest, shortest = self.step
        if self.decay == "geometric":
            return _geometric(self.step, share), _geometric(self.change, share)
        step = shortest + (longest - shortest) * (1 + math.cos(math.pi * share)) / 2
        return step, _geometric(self.change, share)


CHANGE = (0.4, 0.0005)
EXPLORE = {
    "cosine": {
        "linf": (Schedule(step=(2.0, 0.02), decay="cosine", change=CHANGE, momentum=0.5),),
        "l2": (Schedule(step=(2.0, 0.02), decay="cosine", change=CHANGE, momentum=0.0),),
    },
    "geometric": dict.fromkeys(
        ("linf", "l2"),
        (
            Schedule(step=(4.0, 0.02), decay="geometric", change=CHANGE, momentum=0.5),
            Schedule(step=(4.0, 0.02), decay="geometric", change=CHANGE, momentum=0.25),
        ),
    ),
}
"""Wide steps across the ball, which leave poor local minima; by the decay, by the norm, and by the starts in turn. Of
few descents those are best whose steps stay wide for long: in Linf, where a step keeps the signs of gradients alone,
several have to agree. Of many descents those are best whose steps begin wider and soon get small."""

UNTARGETED = {
    "cosine": EXPLORE["cosine"],
    "geometric": {
        "linf": EXPLORE["geometric"]["linf"],
        "l2": (Schedule(step=(16.0, 0.1), decay="cosine", change=CHANGE, momentum=0.0),),
    },
}
"""The same for untargeted descents. In L2, where many others went before, their steps lead right across the ball for
long, as those of FMN with wide steps do, and they end elsewhere."""

REFINE = Schedule(step=(2.0, 0.01), decay="geometric", change=(0.2, 0.0005), momentum=0.75)
"""Steps around the nearest input that is known, along what several gradients agree on: where pieces of the network
meet, each gradient alone leads across the kink and back."""

BELOW = 0.0005
"""How far below the nearest input found a radius is at least, as a share of its distance."""

AGREE = 0.005
"""By what share of the distance descents that ended in the same place may differ."""

OUTSIDE = 4.0
"""How many times as far as the nearest input found a fixed start is."""

HALVINGS = 6
"""How often at most the linearised distance is halved before the scout sets out."""

WIDER = 16
"""How often at most a ball is doubled."""

CELLS = (10**9, 7, 4)
"""Cells along an axis of the signs of fixed starts, in turn; the first has a sign for every value."""


def apgd(search: Search, found: Found, effort: Effort, rows: Tensor) -> None:
    """Targeted projected gradient descent on `z_t - z_j` with the radius searched for by each row on its way.

    Each step goes along the steepest direction of the norm and is projected on a ball around the point. While nothing
    near was found the radius follows the linearised distance; later it shrinks below every such input, and grows again,
    up to what the point has already, where the step left none. Steps and changes of the radius shrink (`Schedule`).

    A descent begins towards several competitors; after each round only those that it reached nearest go on, so that
    most steps are spent on the right one. There is one from the point itself, and shorter ones from other starts, each
    as if nothing had been found before: short descents from many starts find nearer inputs than long ones from few.
    Some go towards whichever competitor is nearest at each step, since those aimed at first agree with each other also
    where another one is nearer. A point is left once several descents have ended as near as the best, so that more are
    spent where they disagree. Then come steps with more momentum from the nearest input that any attack has found,
    unless that is far. Where descents are few, a scout goes before them, untargeted: it tells which competitors are
    worth aiming at. Its radius begins where the steepest line from the point leaves the predicted class, if that is
    before the linearised distance, which is many times too great where units saturate.

    Sources: Croce and Hein, Reliable evaluation of adversarial robustness with an ensemble of diverse parameter-free
    attacks (ICML 2020), section 4 (targeted loss, ball, box); Pintor et al., Fast minimum-norm adversarial attacks
    through adaptive norm constraints (NeurIPS 2021), algorithm 1 (the radius); Dong et al., Boosting adversarial
    attacks with momentum (CVPR 2018), algorithm 1 (momentum of gradients of length one); Jamieson and Talwalkar,
    Non-stochastic best arm identification and hyperparameter optimization (AISTATS 2016), section 3 (successive
    halving).
    """
    if effort.scout_steps:
        _scout(search, effort, rows)
    ends = torch.empty(0, len(search.own), dtype=torch.float64, device=rows.device)
    for start in effort.starts:
        as_near = ends.isfinite() & (ends <= (1 + AGREE) * search.best.distance)
        doubtful = rows[(as_near.sum(dim=0) < effort.agreeing)[rows]]
        ends = torch.cat([ends, _set_out(search, effort, doubtful, start)[None]])
    search.bisect(found, effort.halvings)
    if effort.refine_steps:
        beside = search.beside_best(rows, effort.refine_targets)
        _descend(search, search.best, REFINE, ((0, effort.refine_steps),), *beside)
        search.bisect(found, effort.halvings)


def _scout(search: Search, effort: Effort, rows: Tensor) -> None:
    """A descent from the point towards whichever competitor is nearest at each step."""
    rows, rivals, linear = search.rivals(rows, 1)
    with search.anew() as found:
        radius = steepest_line(search, rows, rivals, linear)
        schedule, anyone = EXPLORE[effort.decay][search.norm.name][0], torch.full_like(rivals, ANY)
        _descend(search, found, schedule, ((1, effort.scout_steps),), rows, anyone, search.origin[rows], radius)


def steepest_line(search: Search, rows: Tensor, targets: Tensor, length: Tensor) -> Tensor:
    """The `length`, `[R]`, halved as long as a step as long along the steepest direction has another prediction."""
    length, going = length.clone(), torch.arange(len(rows), device=rows.device)
    direction = search.norm.unit(search.differentiate(rows, search.origin[rows], targets).gradient)
    for _ in range(HALVINGS):
        step = length[going].to(direction)[:, None] * direction[going]
        going = going[search.look(rows[going], search.origin[rows[going]] - step) < 0]
        length[going] /= 2
    return length


def _set_out(search: Search, effort: Effort, rows: Tensor, start: int) -> Tensor:
    """A descent from a start, for which nothing counts that was found from another; the distance where it ended, `[B]`.

    Where nothing was found, each start but the point begins with a ball twice as wide.
    """
    untargeted = start in effort.untargeted
    rounds = effort.restart_rounds if start else effort.rounds
    rounds = ((1, effort.untargeted_steps[search.norm.name]),) if untargeted else rounds
    targeted, rivals, linear = search.rivals(rows, rounds[0][0])
    points, known = _start(search, targeted, start), search.best.distance[targeted]
    wider, least = 2.0 ** min(start, WIDER) * linear, known / FAR if start else torch.zeros_like(known)
    radius = torch.where(known.isfinite(), linear.clamp(least, known), wider)
    rivals = torch.full_like(rivals, ANY) if untargeted else rivals
    schedules = (UNTARGETED if untargeted else EXPLORE)[effort.decay][search.norm.name]
    with search.anew() as found:
        _descend(search, found, schedules[start % len(schedules)], rounds, targeted, rivals, points, radius)
    return found.distance


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
    rounds: Rounds,
    rows: Tensor,
    targets: Tensor,
    points: Tensor,
    radius: Tensor,
) -> None:
    """The steps of all `rounds` from `points`, `[R, n]`, and `radius`, `[R]`, below what is `found`."""
    heading, boundary = torch.zeros_like(points), radius
    last, number = max(1, sum(steps for _, steps in rounds) - 1), 0
    for several, (count, steps) in enumerate(rounds):
        if several:
            reached = search.by_class[rows, targets]
            kept = nearest_of_each(rows, torch.where(reached.isfinite(), reached, boundary), count)
            rows, targets, points, radius, heading = (one[kept] for one in (rows, targets, points, radius, heading))
        origin = search.origin[rows]
        for _ in range(steps):
            step, change = schedule.at(number / last)
            response = search.differentiate(rows, points, targets)
            length = search.norm.length(response.points - origin)
            steepness = search.norm.dual(response.gradient).clamp_min(TINY)
            boundary = length + response.margin / steepness
            radius = next_radius(response.flipped, length, boundary, found.distance[rows], radius, change)
            heading = schedule.momentum * heading + response.gradient / steepness.to(points)[:, None]
            moved = response.points - (step * radius).to(points)[:, None] * search.norm.unit(heading)
            points = origin + search.norm.into_ball(moved - origin, radius)
            number += 1
    search.look(rows, points)


def nearest_of_each(rows: Tensor, distance: Tensor, count: int) -> Tensor:
    """Which of `rows`, `[R]`, are among the `count` of their point with the smallest `distance`, `[R]`, in order."""
    order = distance.argsort(stable=True)
    order = order[rows[order].argsort(stable=True)]
    point, place = rows[order], torch.arange(len(rows), device=rows.device)
    begins = torch.ones_like(point, dtype=torch.bool)
    begins[1:] = point[1:] != point[:-1]
    rank = place - torch.where(begins, place, 0).cummax(dim=0).values
    return order[rank < count].sort().values


def next_radius(
    flipped: Tensor, length: Tensor, boundary: Tensor, best: Tensor, radius: Tensor, change: float
) -> Tensor:
    """The radius of the next step, from the length of this one, the linearised boundary and what is known, `[R]`."""
    shrunk = torch.minimum(torch.minimum(radius, length) * (1 - change), boundary.clamp_min(0.5 * length))
    grown = torch.minimum(radius * (1 + change), best * (1 - BELOW))
    towards = boundary.clamp(1.05 * radius, 1.5 * radius)
    return torch.where(flipped, shrunk, torch.where(best > FAR * radius, towards, grown)).nan_to_num(posinf=1 / TINY)


def _geometric(ends: tuple[float, float], share: float) -> float:
    first, last = ends
    return first * (last / first) ** share
