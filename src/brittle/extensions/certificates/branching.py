"""Branch and bound over the signs of what enters rectifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.extensions.certificates.crown import Walk
from brittle.extensions.certificates.graph import Network
from brittle.extensions.certificates.region import Enclosure, Region
from brittle.extensions.certificates.relaxations import Line, Lines, plain
from brittle.measure.rows import join, pick

RATE = 0.1
"""First length of a step, as a share of the range of a slope; the last is a tenth of it."""


@dataclass(frozen=True)
class Choices:
    """What is chosen at each step of two straight pieces, by its number in the walk; `[P, *shape]` each.

    Slopes, in [0, 1], are those of the line below an unstable number, as a share of the way between its two pieces.
    Signs are 1 where what enters, `y`, is at least 0 by assumption, -1 where it is at most 0, and 0 where nothing is
    assumed; multipliers, at least 0, are those of `sign y`.
    """

    slopes: Mapping[int, Tensor]
    signs: Mapping[int, Tensor]
    multipliers: Mapping[int, Tensor]


@dataclass(frozen=True)
class Chosen:
    """The best linear functions found.

    `lower`, `[P]`, are their minima over the regions; within `reach` they are positive. `coefficients`, `[P, *shape]`,
    are those of the last functions on what leaves each step of two pieces, by its number.
    """

    lower: Tensor
    reach: Tensor
    choices: Choices
    coefficients: Mapping[int, Tensor]


def optimised(
    network: Network,
    region: Region,
    kept: Sequence[Enclosure],
    functions: Tensor,
    constants: Tensor,
    steps: int,
    choices: Choices | None = None,
) -> Chosen:
    """The best linear lower bound found of one function `w . z + b` of the network's output each, over a region.

    Any slope between those of its two pieces is one of a line through 0 below a rectifier, and where a sign is assumed,
    `-m sign y` with `m >= 0` can be added to what is bounded, which is nowhere above it then. So both may be chosen: by
    projected gradient steps (Adam) that raise the minimum over the region. The bounds on what enters each layer stay as
    they are given. The best of all steps is taken for each row, the first of which has the choices that were given.

    Source: Xu, Zhang, Wang, Wang, Jana, Lin, Hsieh, Fast and complete: enabling complete verification with rapid and
    massively parallel incomplete verifiers (ICLR 2021), section 3.2, for the slopes; Wang et al., Beta-CROWN (NeurIPS
    2021), section 3.1, for the multipliers.

    `w` is `[P, L]`, `b` `[P]`, for as many rows of the region, over which a walk `kept` its bounds; each of the `steps`
    is a pass forward and one backward, beside one of each to begin with, which has the `choices`.
    """
    walk = _FreeWalk(region, kept, choices)
    outputs = walk.logits(network).value
    level, best, gradients = constants, torch.full_like(constants, -torch.inf), torch.zeros_like(region.points)
    moved = [*walk.slopes.values(), *walk.multipliers.values()]
    steps = steps if moved else 0
    adam = torch.optim.Adam(moved or [torch.zeros(1)], lr=RATE, betas=(0.7, 0.9), maximize=True)
    for step in range(steps + 1):
        last = step == steps
        gradient, beside = torch.autograd.grad(
            outputs, (walk.inputs, walk.beside), functions, retain_graph=True, create_graph=not last,
            materialize_grads=True,
        )  # fmt: skip
        levels = torch.einsum("bn,bn->b", functions, outputs.detach()) + beside + constants
        lower = levels + region.least(gradient[None])[0]
        better = lower.detach() > best
        best = torch.where(better, lower.detach(), best)
        level = torch.where(better, levels.detach(), level)
        gradients = torch.where(better.view(-1, *[1] * (gradient.dim() - 1)), gradient.detach(), gradients)
        if last:
            break
        for one, slope in zip(moved, torch.autograd.grad(lower.sum(), moved, allow_unused=True), strict=True):
            one.grad = slope
        adam.param_groups[0]["lr"] = RATE * 0.1 ** (step / steps)
        adam.step()
        with torch.no_grad():  # back to where each choice gives a bound
            for one in walk.slopes.values():
                one.clamp_(0, 1)
            for one in walk.multipliers.values():
                one.clamp_(min=0)
    reach = region.reach(level[None], gradients[None])[0].where(best > -torch.inf, 0.0)
    slopes, multipliers = (
        {step: one.detach() for step, one in some.items()} for some in (walk.slopes, walk.multipliers)
    )
    return Chosen(best, reach, Choices(slopes, walk.begun.signs, multipliers), walk.coefficients)


class _FreeWalk(Walk):
    """A walk with given bounds on what enters each layer, and lines that can still be moved."""

    def __init__(self, region: Region, kept: Sequence[Enclosure], choices: Choices | None) -> None:
        super().__init__(region)
        self.given, self.begun = kept, choices or Choices({}, {}, {})
        self.slopes: dict[int, Tensor] = {}
        self.multipliers: dict[int, Tensor] = {}
        self.coefficients: dict[int, Tensor] = {}

    def keep(self, interval: Enclosure, cut: Any) -> Enclosure:
        found = self.given[len(self.kept)]
        self.kept.append(found)
        return found

    def around(
        self, function: tuple[Any, ...], entering: Tensor, values: Tensor, interval: Enclosure, lines: Lines
    ) -> Tensor:
        """Between lines of which the lower may be turned."""
        operator, *constants = function
        if not plain(operator, tuple(constants)):
            return super().around(function, entering, values, interval, lines)
        step, least = len(self.kept) - 1, float(constants[0]) if constants else 0.0
        begin = self.begun.slopes.get(step)
        if begin is None:
            begin = ((lines.lower.slope - least) / max(1 - least, 1e-9)).clamp(0, 1)
        self.slopes[step] = begin.clone().requires_grad_(True)
        signs = self.begun.signs.get(step)
        if signs is not None:
            self.multipliers[step] = self.begun.multipliers[step].clone().requires_grad_(True)
        crossing = (interval.lower < 0) & (interval.upper > 0)
        return _FreeBetween.apply(entering, self.beside, values, self, step, lines, crossing, least)


class _FreeBetween(torch.autograd.Function):
    """A function between two lines that are still free: its way back can be differentiated by their choice."""

    @staticmethod
    def forward(
        ctx: Any, entering: Tensor, beside: Tensor, values: Tensor, walk: _FreeWalk, step: int, lines: Lines,
        crossing: Tensor, least: float,
    ) -> Tensor:  # fmt: skip
        """`values`, the function of `entering`."""
        ctx.walk, ctx.step, ctx.lines, ctx.crossing, ctx.least = walk, step, lines, crossing, least
        ctx.entering, ctx.values = entering.detach(), values
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Negative coefficients take the upper line, positive ones the lower; assumed signs add their multiples."""
        walk, step, lines, entering = ctx.walk, ctx.step, ctx.lines, ctx.entering
        walk.coefficients[step] = gradients[0].detach()
        positive, negative = gradients[0].clamp(min=0), gradients[0].clamp(max=0)
        slope = torch.where(ctx.crossing, ctx.least + (1 - ctx.least) * walk.slopes[step], lines.lower.slope)
        lower = Line(slope, lines.lower.offset)
        apart = positive * (lower.at(entering) - ctx.values) + negative * (lines.upper.at(entering) - ctx.values)
        back = positive * lower.slope + negative * lines.upper.slope
        if step in walk.multipliers:
            assumed = walk.multipliers[step] * walk.begun.signs[step]
            apart, back = apart - assumed * entering, back - assumed
        beside = apart.reshape(len(walk.beside), -1).sum(dim=1)
        return back, beside, None, None, None, None, None, None


ROOT_STEPS = 3
"""Gradient steps for each margin before anything is split."""

LEAF_STEPS = 1
"""The same for each part, which begins with the choices of the whole that it is a part of."""

TOGETHER = 4
"""Parts of a ball that are split at a time."""

POSITIVE = 1e-3
"""What a positive coefficient counts beside a negative one when a number to split at is chosen: it can be turned."""

NUMBERS = 2**21
"""Numbers in the widest layer, of all parts that are bounded together."""


@dataclass(frozen=True)
class Roots:
    """Some margins around some points, `M` of them, as the roots of trees of parts.

    `kept` bounds over the balls what enters each nonlinear step. A margin is `weights`, `[M, L]`, of the output, and a
    constant; `point` is whose it is, counted from 0.
    """

    network: Network
    region: Region
    kept: Sequence[Enclosure]
    weights: Tensor
    constants: Tensor
    point: Tensor


@dataclass(frozen=True)
class _Parts:
    """Parts of the balls, `P` of them; the numbers that enter rectifiers are counted through all layers, `n`.

    `reach` is how far from the point the margin is proved positive in the part. `signs`, `[P, n]`, are assumed of each
    number, 0 where nothing is; slopes and multipliers are the last choices (`Choices`). `next` is the number to split
    at, -1 where none is unstable.
    """

    root: Tensor
    reach: Tensor
    signs: Tensor
    slopes: Tensor
    multipliers: Tensor
    next: Tensor


def branched(margins: Roots, budget: Tensor, count: Callable[[Tensor, Tensor], None]) -> Tensor:
    """How far from its point each margin is proved positive, at most as far as its ball goes, `[M]`.

    A margin that no linear function proves positive over the whole ball is proved in parts, in each of which the sign
    of what enters some rectifiers is assumed: the parts that reach least are split in two at the number whose
    relaxation costs their bound most. All parts together are the ball, so that the least of their reaches is proved.

    Source: Wang et al., Beta-CROWN (NeurIPS 2021), section 3; Bunel et al., Branch and bound for piecewise linear
    neural network verification (JMLR 2020), section 5.2, for the choice of the number.

    The last parts of a point may go beyond its `budget` of passes; `count` is told of the points and the passes, half
    forward and half backward, that each spent.
    """
    spent = torch.zeros_like(budget)

    def note(points: Tensor, steps: int) -> None:
        passes = torch.full_like(points, 2 * (steps + 1))
        spent.index_add_(0, points, passes)
        count(points, passes)

    tree, radii = _Tree(margins), margins.region.radii
    parts = tree.roots()
    note(margins.point, ROOT_STEPS)
    while len(parts.root):
        points = margins.point[parts.root]
        hopeless = torch.zeros_like(budget, dtype=torch.bool)
        hopeless[points[parts.next < 0]] = True
        chosen = _worst(parts, points, (~hopeless & (spent < budget))[points])
        if not len(chosen):
            break
        halves = tree.halves(pick(parts, chosen))
        note(margins.point[halves.root], LEAF_STEPS)
        rest = torch.ones_like(parts.root, dtype=torch.bool)
        rest[chosen] = False
        parts = join([pick(parts, rest), halves])
        parts = pick(parts, parts.reach < radii[parts.root])
    return radii.scatter_reduce(0, parts.root, parts.reach, "amin")


def _worst(parts: _Parts, points: Tensor, usable: Tensor) -> Tensor:
    """`TOGETHER` parts of each point that reach least, of those that are usable."""
    rows = usable.nonzero()[:, 0]
    rows = rows[parts.reach[rows].argsort(stable=True)]
    rows = rows[points[rows].argsort(stable=True)]
    counts = points[rows].unique_consecutive(return_counts=True)[1]
    first = (counts.cumsum(0) - counts).repeat_interleave(counts)
    return rows[torch.arange(len(rows), device=rows.device) - first < TOGETHER]


class _Tree:
    """Bounds of the parts of some balls."""

    def __init__(self, margins: Roots) -> None:
        self.margins = margins
        widest = max(margins.region.points[0].numel(), *(one.lower[0].numel() for one in margins.kept))
        self.together = max(1, NUMBERS // widest)
        self.steps: tuple[int, ...] = ()

    def roots(self) -> _Parts:
        """The balls themselves, those that are not proved."""
        every = torch.arange(len(self.margins.point), device=self.margins.point.device)
        kept = self.margins.kept
        parts = join([self._bound(rows, pick(kept, rows), None, ROOT_STEPS) for rows in every.split(self.together)])
        return pick(parts, parts.reach < self.margins.region.radii[parts.root])

    def halves(self, parts: _Parts) -> _Parts:
        count = len(parts.root)
        both = join([parts, parts])
        both.signs[:count].scatter_(1, parts.next[:, None], 1)
        both.signs[count:].scatter_(1, parts.next[:, None], -1)
        every = torch.arange(2 * count, device=parts.root.device).split(self.together)
        some = (pick(both, rows) for rows in every)
        halves = join([self._bound(one.root, *self._assumed(one), LEAF_STEPS) for one in some])
        # What holds in the whole holds in its halves.
        return replace(halves, reach=halves.reach.maximum(both.reach))

    def _assumed(self, parts: _Parts) -> tuple[list[Enclosure], Choices]:
        """The bounds with the assumptions of each part, and its choices by step."""
        kept = list(pick(self.margins.kept, parts.root))
        sizes = [kept[step].lower[0].numel() for step in self.steps]

        def by_step(values: Tensor) -> dict[int, Tensor]:
            split = zip(self.steps, values.double().split(sizes, dim=1), strict=True)
            return {step: one.view_as(kept[step].lower) for step, one in split}

        choices = Choices(by_step(parts.slopes), by_step(parts.signs), by_step(parts.multipliers))
        for step, signs in choices.signs.items():
            lower, upper = kept[step].lower, kept[step].upper
            kept[step] = Enclosure(
                lower.where(signs <= 0, lower.clamp(min=0)), upper.where(signs >= 0, upper.clamp(max=0))
            )
        return kept, choices

    def _bound(self, roots: Tensor, kept: Sequence[Enclosure], choices: Choices | None, steps: int) -> _Parts:
        """The parts with what is found for them, and where to split them next.

        An unstable number whose coefficient is negative costs its bound up to that times `-l u / (u - l)`, the height
        of the chord above the kink. Where none is negative, the others count, too.
        """
        margins, region = self.margins, pick(self.margins.region, roots)
        weights, constants = margins.weights[roots], margins.constants[roots]
        chosen = optimised(margins.network, region, kept, weights, constants, steps, choices)
        self.steps = tuple(chosen.choices.slopes)
        costs = [torch.zeros(len(roots), 0, dtype=torch.float64, device=roots.device)]
        for step in self.steps:
            low, high, coefficients = (
                one.reshape(len(roots), -1) for one in (kept[step].lower, kept[step].upper, chosen.coefficients[step])
            )
            crossing = (low < 0) & (high > 0)
            height = -low * high / (high - low).where(crossing, 1.0)
            size = torch.where(coefficients < 0, -coefficients, POSITIVE * coefficients)
            costs.append((size * height).nan_to_num(0.0).where(crossing, 0.0))
        cost, place = torch.cat([*costs, costs[0].new_zeros(len(roots), 1)], dim=1).max(dim=1)

        def flat(some: Mapping[int, Tensor]) -> Tensor:
            begun = [some.get(step, torch.zeros_like(chosen.choices.slopes[step])) for step in self.steps]
            return torch.cat([one.reshape(len(roots), -1) for one in begun] or [costs[0]], dim=1)

        signs, slopes, multipliers = map(
            flat, (chosen.choices.signs, chosen.choices.slopes, chosen.choices.multipliers)
        )
        nearer = place.where(cost > 0, -1)
        reach = chosen.reach.minimum(region.radii)
        return _Parts(roots, reach, signs.to(torch.int8), slopes.float(), multipliers.float(), nearer)
