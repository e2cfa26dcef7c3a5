"""APGD: projected gradient descent on the margin in a ball whose radius is searched for on the way."""

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
    """Schedules of steps and radii."""

    step: tuple[float, float]  # first and last length, as a share of the radius
    decay: Decay
    change: tuple[float, float]  # first and last relative change of the radius, which shrinks geometrically
    momentum: tuple[float, ...]  # share of the direction of a step that goes on in the next, of the starts in turn

    def at(self, share: float) -> tuple[float, float]:
        """Step and change after the share `share` of all steps."""
        step, change = (start * (end / start) ** share for start, end in (self.step, self.change))
        if self.decay == "cosine":
            step = self.step[1] + (self.step[0] - self.step[1]) * (1 + math.cos(math.pi * share)) / 2
        return step, change


CHANGE = (0.4, 0.0005)
FEW = {
    "linf": Schedule((2.0, 0.02), "cosine", CHANGE, momentum=(0.5,)),
    "l2": Schedule((2.0, 0.02), "cosine", CHANGE, momentum=(0.25,)),
}
MANY = Schedule((4.0, 0.02), "geometric", CHANGE, momentum=(0.5, 0.25))
EXPLORE = {"cosine": FEW, "geometric": {"linf": MANY, "l2": MANY}}
"""Wide steps across the ball, which leave poor local minima; by the decay, and by the norm. Of few descents those are
best whose steps stay wide for long: in Linf, where a step keeps the signs of gradients alone, several have to agree. Of
many descents those are best whose steps begin wider and soon get small."""

ACROSS = Schedule((16.0, 0.1), "cosine", CHANGE, momentum=(0.0,))
UNTARGETED = {"cosine": FEW, "geometric": {"linf": MANY, "l2": ACROSS}}
"""The same for untargeted descents. In L2, where many others went before, their steps lead right across the ball for
long, as those of FMN with wide steps do, and they end elsewhere."""

REFINE = Schedule((2.0, 0.01), "geometric", (0.2, 0.0005), momentum=(0.75,))
"""Steps around the nearest input that is known, along what several gradients agree on: where pieces of the network
meet, each gradient alone leads across the kink and back."""

BELOW = 0.0005  # smallest distance of a radius below the nearest input found, as a share of its distance
AGREE = 0.005  # share of the distance by which descents that ended in the same place may differ
OUTSIDE = 4.0  # distance of a fixed start, in distances of the nearest input found
HALVINGS = 6  # number of times that the linearised distance is halved at most before the scout sets out
WIDER = 16  # number of times that a ball is doubled at most
CELLS = (10**9, 7, 4)  # cells along an axis of the signs of fixed starts, in turn; the first has a sign for every value


@dataclass(frozen=True)
class Descents:
    """Starts of descents: a row for each competitor that a descent begins towards, `[R]`."""

    positions: Tensor  # of the descent that a row is of
    rows: Tensor
    targets: Tensor  # a class for each, or `ANY`
    points: Tensor  # `[R, n]`
    radius: Tensor  # of the first ball
    starts: Tensor  # number of the start


def apgd(search: Search, neighbours: Found, effort: Effort, rows: Tensor) -> None:
    """Targeted projected gradient descent on `z_t - z_j` with the radius searched for by each row on its way.

    Each step goes along the steepest direction of the norm and is projected on a ball around the point. While nothing
    near was found the radius follows the linearised distance; later it shrinks below every such input, and grows again,
    up to what the point has already, where the step left none. Steps and changes of the radius shrink (`Schedule`).

    A descent begins towards several competitors; after each round only those that it reached nearest go on. There is
    one from the point itself, and shorter ones from other starts, each as if nothing had been found before: short
    descents from many starts find nearer inputs than long ones from few. Some go towards whichever competitor is
    nearest at each step. A point is left once several descents have ended as near as the best, so that more are spent
    where they disagree. Then come steps with more momentum from the nearest input that any attack has found, unless
    that is far. Where descents are few, an untargeted scout goes before them, which tells what to aim at. Its radius
    begins where the steepest line from the point leaves the predicted class, if that is before the linearised distance,
    which is many times too great where units saturate.

    Sources: Croce and Hein, Reliable evaluation of adversarial robustness with an ensemble of diverse parameter-free
    attacks (ICML 2020), section 4 (targeted loss, ball, box); Pintor et al., Fast minimum-norm adversarial attacks
    through adaptive norm constraints (NeurIPS 2021), algorithm 1 (the radius); Dong et al., Boosting adversarial
    attacks with momentum (CVPR 2018), algorithm 1 (momentum of gradients of length one); Jamieson and Talwalkar,
    Non-stochastic best arm identification and hyperparameter optimization (AISTATS 2016), section 3 (successive
    halving).
    """
    if effort.scout_steps:
        _scout(search, effort, rows)
    ends = torch.full((len(search.own), len(effort.starts)), torch.inf, dtype=torch.float64, device=rows.device)
    turn = torch.zeros_like(search.own)
    while len(pairs := _due(search, effort, ends, turn, rows)):
        for part in pairs.split(max(len(rows), search.rows // effort.restart_rounds[0][0])):
            ends[part[:, 0], part[:, 1]] = _set_out(search, effort, *part.unbind(dim=1))
        turn.index_add_(0, pairs[:, 0], torch.ones_like(pairs[:, 0]))
    search.bisect(neighbours, effort.halvings)
    if effort.refine_steps:
        beside = search.beside_best(rows, effort.refine_targets)
        descents = Descents(beside[0], *beside, starts=torch.zeros_like(beside[0]))
        _descend(search, search.best.distance.clone(), REFINE, ((0, effort.refine_steps),), descents)
        search.bisect(neighbours, effort.halvings)


def _due(search: Search, effort: Effort, ends: Tensor, turn: Tensor, rows: Tensor) -> Tensor:
    """Return points and places in the starts, `[P, 2]`, of the descents that set out together from each of `rows`: as
    many more as have to end as near as the best, or as went before, so that few small passes are left; the first alone,
    since others begin beside what it finds. `ends`, `[B, S]`, is where those ended that were in `turn`, `[B]`."""
    as_near = ends.isfinite() & (ends <= (1 + AGREE) * search.best.distance[:, None])
    missing = effort.agreeing - as_near.sum(dim=1)
    missing = torch.where(missing > 0, torch.maximum(missing, turn), 0)
    missing = torch.where(turn > 0, missing, 1)[rows, None]
    number = torch.arange(len(effort.starts), device=rows.device)
    due = (number >= turn[rows, None]) & (number < turn[rows, None] + missing)
    point, number = due.nonzero().unbind(dim=1)
    return torch.stack([rows[point], number], dim=1)


def _scout(search: Search, effort: Effort, rows: Tensor) -> None:
    places, rivals, linear = search.rivals(rows, 1)
    rows = rows[places]
    radius = steepest_length(search, rows, rivals, linear)
    schedule, anyone = EXPLORE[effort.decay][search.norm.name], torch.full_like(rivals, ANY)
    positions = torch.arange(len(rows), device=rows.device)
    descents = Descents(positions, rows, anyone, search.origin[rows], radius, torch.zeros_like(rows))
    _descend(search, torch.full_like(radius, torch.inf), schedule, ((1, effort.scout_steps),), descents)


def steepest_length(search: Search, rows: Tensor, targets: Tensor, length: Tensor) -> Tensor:
    """Return `length`, `[R]`, halved while a step that long along the steepest direction changes the prediction."""
    length, active = length.clone(), torch.arange(len(rows), device=rows.device)
    gradient = search.differentiate(rows, search.origin[rows], targets).gradient
    for _ in range(HALVINGS):
        points = search.norm.downhill(search.origin[rows[active]], gradient[active], length[active])
        active = active[search.look(rows[active], points) < 0]
        length[active] /= 2
    return length


def _set_out(search: Search, effort: Effort, rows: Tensor, numbers: Tensor) -> Tensor:
    """Descend from the points `rows` by the starts at the places `numbers`, and return where that ended, `[P]` each, as
    if nothing had been found from another start. Where nothing was, each start but the point doubles the first ball."""
    starts = torch.tensor(effort.starts, device=rows.device)[numbers]
    limit = torch.full((len(rows),), torch.inf, dtype=torch.float64, device=rows.device)
    untargeted = torch.isin(starts, torch.tensor(effort.untargeted, device=rows.device))
    steps = effort.untargeted_steps[search.norm.name]
    for selection, rounds, schedules in (
        (starts == 0, effort.rounds, EXPLORE),
        ((starts > 0) & ~untargeted, effort.restart_rounds, EXPLORE),
        (untargeted, ((1, steps),), UNTARGETED),
    ):
        if not bool(selection.any()):
            continue
        positions = selection.nonzero()[:, 0]
        places, rivals, linear = search.rivals(rows[positions], rounds[0][0])
        positions = positions[places]
        targeted, start = rows[positions], starts[positions]
        points, distances = _start(search, targeted, start), search.best.distance[targeted]
        wider = 2.0 ** start.clamp_max(WIDER) * linear
        smallest = torch.where(start > 0, distances / FAR, 0)
        radius = torch.where(distances.isfinite(), linear.clamp(smallest, distances), wider)
        rivals = torch.full_like(rivals, ANY) if schedules is UNTARGETED else rivals
        schedule = schedules[effort.decay][search.norm.name]
        _descend(search, limit, schedule, rounds, Descents(positions, targeted, rivals, points, radius, start))
    return limit


def _start(search: Search, rows: Tensor, starts: Tensor) -> Tensor:
    """Return the starts of descents: the point, the reflected nearest input found, or a fixed pattern, `[R, n]`."""
    origin = search.origin[rows]
    offset = search.best.points[rows] - origin
    points = torch.where((starts == 1)[:, None], search.bounds.clip(origin - offset), origin)
    length = OUTSIDE * search.norm.length(offset)
    for number in starts[starts > 1].unique().tolist():
        generator = torch.Generator().manual_seed(number)
        signs = coarse_signs(search.shape, CELLS[number % len(CELLS)], generator).to(origin)
        selection = (starts == number).nonzero()[:, 0]
        far = (length[selection] / search.norm.length(signs[None])).to(origin)[:, None] * signs
        points[selection] = search.bounds.clip(origin[selection] + far)
    return points


def _descend(search: Search, limit: Tensor, schedule: Schedule, rounds: Rounds, descents: Descents) -> None:
    """Take the steps of all `rounds`, below the `limit` of each descent, `[D]`, which falls to the nearest input."""
    positions, rows, targets, points, radius, starts = vars(descents).values()
    heading, boundary, reached = torch.zeros_like(points), radius, torch.full_like(radius, torch.inf)
    momentum = torch.tensor(schedule.momentum).to(points)[starts % len(schedule.momentum), None]
    last, number = max(1, sum(steps for _, steps in rounds) - 1), 0
    for several, (count, steps) in enumerate(rounds):
        if several:
            leading = nearest_of_each(positions, torch.where(reached.isfinite(), reached, boundary), count)
            positions, rows, targets, points, radius, heading, reached, momentum = (
                tensor[leading] for tensor in (positions, rows, targets, points, radius, heading, reached, momentum)
            )
        origin = search.origin[rows]
        for _ in range(steps):
            step, change = schedule.at(number / last)
            response = search.differentiate(rows, points, targets)
            length = torch.where(response.flipped, response.length, torch.inf)
            reached = torch.minimum(reached, length)
            limit.scatter_reduce_(0, positions, length, "amin")
            steepness = response.steepness.clamp_min(TINY)
            boundary = response.length + response.margin / steepness
            radius = next_radius(response.flipped, response.length, boundary, limit[positions], radius, change)
            gradient = response.gradient * (1 / steepness).to(points)[:, None]
            heading = torch.addcmul(gradient, heading, momentum)
            moved = search.norm.downhill(response.points, heading, step * radius)
            if schedule.decay == "cosine":  # across the box rather than along its walls
                moved = search.bounds.clip(moved)
            points = search.norm.into_ball(moved, origin, radius, search.bounds)
            number += 1
    flipped, length = search.look(rows, points) < 0, search.norm.length(points - search.origin[rows])
    limit.scatter_reduce_(0, positions, torch.where(flipped, length, torch.inf), "amin")


def nearest_of_each(rows: Tensor, distance: Tensor, count: int) -> Tensor:
    """Return which of `rows`, `[R]`, are among their point's `count` of the smallest `distance`, `[R]`, in order."""
    order = distance.argsort(stable=True)
    order = order[rows[order].argsort(stable=True)]
    point, place = rows[order], torch.arange(len(rows), device=rows.device)
    begins = torch.ones_like(point, dtype=torch.bool)
    begins[1:] = point[1:] != point[:-1]
    rank = place - torch.where(begins, place, 0).cummax(dim=0).values
    return order[rank < count].sort().values


def next_radius(flips: Tensor, length: Tensor, boundary: Tensor, best: Tensor, radius: Tensor, change: float) -> Tensor:
    """Return the radius of the next step, `[R]`, from this one's length, the linearised boundary and what is known."""
    shrunk = torch.minimum(torch.minimum(radius, length) * (1 - change), boundary.clamp_min(0.5 * length))
    grown = torch.minimum(radius * (1 + change), best * (1 - BELOW))
    towards = boundary.clamp(1.05 * radius, 1.5 * radius)
    return torch.where(flips, shrunk, torch.where(best > FAR * radius, towards, grown)).nan_to_num(posinf=1 / TINY)
