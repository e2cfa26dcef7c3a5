"""Branch and bound over the signs of the inputs of rectifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from brittle.extensions.certificates.crown import Walk
from brittle.extensions.certificates.graph import Network
from brittle.extensions.certificates.region import Enclosure, Region
from brittle.extensions.certificates.relaxations import Line, Lines, is_rectifier
from brittle.measure.rows import join, pick

RATE = 0.1  # length of the first gradient step, as a share of the range of a slope; the last is a tenth of it


@dataclass(frozen=True)
class Choices:
    """Free parameters of each step of two straight pieces, by its number in the walk; `[P, *shape]` each.

    Slopes, in [0, 1], place the slope of the line below an unstable number between those of its two pieces. Signs
    are 1 where the input `y` of the step is assumed to be at least 0, -1 where at most 0, and 0 without assumption;
    multipliers, at least 0, are those of `sign y`.
    """

    slopes: Mapping[int, Tensor]
    signs: Mapping[int, Tensor]
    multipliers: Mapping[int, Tensor]


def optimise_bounds(
    network: Network,
    region: Region,
    intervals: Sequence[Enclosure],
    functions: Tensor,
    constants: Tensor,
    steps: int,
    choices: Choices | None = None,
) -> tuple[Tensor, _FreeWalk]:
    """Optimise the linear lower bound of one function `w . z + b` of the network's output per row, over a region.

    A line through 0 lies below a rectifier for any slope between those of its two pieces, and where a sign is assumed,
    `-m sign y` with `m >= 0` can be added to the bounded function without raising it. Projected gradient steps (Adam)
    choose both so that the minimum over the region rises. The bounds on the input of each layer stay fixed. Each row
    takes the best of all its steps, the first of which has the initial choices. Returned are the distances within which
    these functions are positive, `[P]`, and the walk with the last choices.

    Source: Xu, Zhang, Wang, Wang, Jana, Lin, Hsieh, Fast and complete: enabling complete verification with rapid and
    massively parallel incomplete verifiers (ICLR 2021), section 3.2, for the slopes; Wang et al., Beta-CROWN (NeurIPS
    2021), section 3.1, for the multipliers.

    `w` is `[P, L]`, `b` `[P]`, one per row of the region; `intervals` are the bounds of a walk over it. Each of the
    `steps` costs a forward and a backward pass, and so does the first evaluation, at the initial `choices`.
    """
    walk = _FreeWalk(region, intervals, choices)
    outputs = walk.logits(network).value
    level, best, gradients = constants, torch.full_like(constants, -torch.inf), torch.zeros_like(region.points)
    parameters = [*walk.slopes.values(), *walk.multipliers.values()]
    steps = steps if parameters else 0
    adam = torch.optim.Adam(parameters or [torch.zeros(1)], lr=RATE, betas=(0.7, 0.9), maximize=True)
    for step in range(steps + 1):
        last = step == steps
        gradient, offsets = torch.autograd.grad(
            outputs, (walk.inputs, walk.offsets), functions, retain_graph=True, create_graph=not last,
            materialize_grads=True,
        )  # fmt: skip
        levels = torch.einsum("bn,bn->b", functions, outputs.detach()) + offsets + constants
        lower = levels + region.lower_bound(gradient[None])[0]
        is_better = lower.detach() > best
        best = torch.where(is_better, lower.detach(), best)
        level = torch.where(is_better, levels.detach(), level)
        gradients = torch.where(is_better.view(-1, *[1] * (gradient.dim() - 1)), gradient.detach(), gradients)
        if last:
            break
        slopes = torch.autograd.grad(lower.sum(), parameters, allow_unused=True)
        for parameter, slope in zip(parameters, slopes, strict=True):
            parameter.grad = slope
        adam.param_groups[0]["lr"] = RATE * 0.1 ** (step / steps)
        adam.step()
        with torch.no_grad():  # outside these ranges a choice gives no bound
            for parameter in walk.slopes.values():
                parameter.clamp_(0, 1)
            for parameter in walk.multipliers.values():
                parameter.clamp_(min=0)
    return region.reach(level[None], gradients[None])[0].where(best > -torch.inf, 0.0), walk


class _FreeWalk(Walk):
    def __init__(self, region: Region, intervals: Sequence[Enclosure], choices: Choices | None) -> None:
        super().__init__(region)
        self.fixed_intervals, self.initial_choices = intervals, choices or Choices({}, {}, {})
        self.slopes: dict[int, Tensor] = {}
        self.multipliers: dict[int, Tensor] = {}
        self.coefficients: dict[int, Tensor] = {}

    def record_interval(self, interval: Enclosure, cut: Any) -> Enclosure:
        self.intervals.append(self.fixed_intervals[len(self.intervals)])
        return self.intervals[-1]

    def relax(self, function: tuple, entering: Tensor, values: Tensor, interval: Enclosure, lines: Lines) -> Tensor:
        """Relax the function between two lines, the lower of them with a free slope."""
        operator, *constants = function
        if not is_rectifier(operator, tuple(constants)):
            return super().relax(function, entering, values, interval, lines)
        step, negative_slope = len(self.intervals) - 1, float(constants[0]) if constants else 0.0
        begin = self.initial_choices.slopes.get(step)
        if begin is None:
            begin = ((lines.lower.slope - negative_slope) / max(1 - negative_slope, 1e-9)).clamp(0, 1)
        self.slopes[step] = begin.clone().requires_grad_(True)
        signs = self.initial_choices.signs.get(step)
        if signs is not None:
            self.multipliers[step] = self.initial_choices.multipliers[step].clone().requires_grad_(True)
        crossing = (interval.lower < 0) & (interval.upper > 0)
        return _FreeBetween.apply(entering, self.offsets, values, self, step, lines, crossing, negative_slope)


class _FreeBetween(torch.autograd.Function):
    """A function between two lines whose backward pass can be differentiated by their free parameters."""

    @staticmethod
    def forward(
        ctx: Any, entering: Tensor, offsets: Tensor, values: Tensor, walk: _FreeWalk, step: int, lines: Lines,
        crossing: Tensor, negative_slope: float,
    ) -> Tensor:  # fmt: skip
        ctx.walk, ctx.step, ctx.lines, ctx.crossing, ctx.negative_slope = walk, step, lines, crossing, negative_slope
        ctx.entering, ctx.values = entering.detach(), values
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Negative coefficients take the upper line, positive ones the lower; assumed signs add their multiples."""
        walk, step, lines, entering, below = ctx.walk, ctx.step, ctx.lines, ctx.entering, ctx.negative_slope
        walk.coefficients[step] = gradients[0].detach()
        positive, negative = gradients[0].clamp(min=0), gradients[0].clamp(max=0)
        slope = torch.where(ctx.crossing, below + (1 - below) * walk.slopes[step], lines.lower.slope)
        lower = Line(slope, lines.lower.offset)
        difference = positive * (lower.at(entering) - ctx.values) + negative * (lines.upper.at(entering) - ctx.values)
        input_gradient = positive * lower.slope + negative * lines.upper.slope
        if step in walk.multipliers:
            sign_slope = walk.multipliers[step] * walk.initial_choices.signs[step]
            difference, input_gradient = difference - sign_slope * entering, input_gradient - sign_slope
        offsets = difference.reshape(len(walk.offsets), -1).sum(dim=1)
        return input_gradient, offsets, None, None, None, None, None, None


ROOT_STEPS = 3  # gradient steps for each margin before the first split
LEAF_STEPS = 1  # gradient steps for each part, which begins with the choices of its parent
PARTS_PER_SPLIT = 4  # parts of a point's ball that are split at a time
POSITIVE = 1e-3  # weight of a positive coefficient against a negative one in the choice of a split: its line is free
NUMBERS = 2**21  # numbers in the widest layer, over all parts that are bounded together


@dataclass(frozen=True)
class _Parts:
    """`P` parts of the balls; the inputs of rectifiers are numbered through all layers, `n` in all.

    `reach` is the distance from the point up to which the margin is proved positive in the part. `signs`, `[P, n]`, are
    the assumptions about each number, 0 for none; slopes and multipliers are the last choices (`Choices`). `split_at`
    is the number to split at, -1 where none is unstable.
    """

    root: Tensor
    reach: Tensor
    signs: Tensor
    slopes: Tensor
    multipliers: Tensor
    split_at: Tensor


def branch_and_bound(tree: Tree, budget: Tensor, count: Callable[[Tensor, Tensor], None]) -> Tensor:
    """Return the distance, up to the radius of its ball, within which each margin is proved positive, `[M]`.

    A margin that no linear function proves positive over the whole ball is proved in parts, each of which assumes the
    sign of some rectifiers' inputs: the parts of least reach are split in two at the number whose relaxation costs
    their bound most. The parts together cover the ball, so that the least of their reaches is proved.

    Source: Wang et al., Beta-CROWN (NeurIPS 2021), section 3; Bunel et al., Branch and bound for piecewise linear
    neural network verification (JMLR 2020), section 5.2, for the choice of the number.

    The last parts of a point may exceed its `budget` of passes; `count` gets points and their passes, half backward.
    """
    passes_spent = torch.zeros_like(budget)

    def note(points: Tensor, steps: int) -> None:
        passes = torch.full_like(points, 2 * (steps + 1))
        passes_spent.index_add_(0, points, passes)
        count(points, passes)

    parts, radii = tree.roots(), tree.region.radii
    note(tree.point, ROOT_STEPS)
    while len(parts.root):
        points = tree.point[parts.root]
        is_hopeless = torch.zeros_like(budget, dtype=torch.bool)
        is_hopeless[points[parts.split_at < 0]] = True
        worst = _worst_parts(parts, points, (~is_hopeless & (passes_spent < budget))[points])
        if not len(worst):
            break
        halves = tree.split(pick(parts, worst))
        note(tree.point[halves.root], LEAF_STEPS)
        is_unsplit = torch.ones_like(parts.root, dtype=torch.bool)
        is_unsplit[worst] = False
        parts = join([pick(parts, is_unsplit), halves])
        parts = pick(parts, parts.reach < radii[parts.root])
    return radii.scatter_reduce(0, parts.root, parts.reach, "amin")


def _worst_parts(parts: _Parts, points: Tensor, usable: Tensor) -> Tensor:
    rows = usable.nonzero()[:, 0]
    rows = rows[parts.reach[rows].argsort(stable=True)]
    rows = rows[points[rows].argsort(stable=True)]
    counts = points[rows].unique_consecutive(return_counts=True)[1]
    group_starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
    return rows[torch.arange(len(rows), device=rows.device) - group_starts < PARTS_PER_SPLIT]


@dataclass
class Tree:
    """The search tree over the parts of balls, of which `M` margins around points are the roots.

    `intervals` bounds the input of each nonlinear step over the balls. A margin is `weights`, `[M, L]`, of the output,
    and a constant; `point` is the number of its point, from 0. `steps` are the numbers of the steps of two pieces.
    """

    network: Network
    region: Region
    intervals: Sequence[Enclosure]
    weights: Tensor
    constants: Tensor
    point: Tensor
    steps: tuple[int, ...] = ()

    @property
    def block_size(self) -> int:
        """Parts that are bounded together."""
        sizes = (interval.lower[0].numel() for interval in self.intervals)
        return max(1, NUMBERS // max(self.region.points[0].numel(), *sizes))

    def roots(self) -> _Parts:
        """Bound the balls themselves and return those that are not proved."""
        blocks = torch.arange(len(self.point), device=self.point.device).split(self.block_size)
        parts = join([self._bound(rows, pick(self.intervals, rows), None, ROOT_STEPS) for rows in blocks])
        return pick(parts, parts.reach < self.region.radii[parts.root])

    def split(self, parts: _Parts) -> _Parts:
        count = len(parts.root)
        doubled = join([parts, parts])
        doubled.signs[:count].scatter_(1, parts.split_at[:, None], 1)
        doubled.signs[count:].scatter_(1, parts.split_at[:, None], -1)
        blocks = torch.arange(2 * count, device=parts.root.device).split(self.block_size)
        parts_of_blocks = (pick(doubled, rows) for rows in blocks)
        halves = join([self._bound(block.root, *self._apply_signs(block), LEAF_STEPS) for block in parts_of_blocks])
        # A proof for a part holds in its halves.
        return replace(halves, reach=halves.reach.maximum(doubled.reach))

    def _apply_signs(self, parts: _Parts) -> tuple[list[Enclosure], Choices]:
        """Return the bounds under the assumptions of each part, and its choices by step."""
        bounds = list(pick(self.intervals, parts.root))
        sizes = [bounds[step].lower[0].numel() for step in self.steps]

        def by_step(values: Tensor) -> dict[int, Tensor]:
            split = zip(self.steps, values.double().split(sizes, dim=1), strict=True)
            return {step: block.view_as(bounds[step].lower) for step, block in split}

        choices = Choices(by_step(parts.slopes), by_step(parts.signs), by_step(parts.multipliers))
        for step, sign in choices.signs.items():
            low, high = bounds[step].lower, bounds[step].upper
            bounds[step] = Enclosure(low.where(sign <= 0, low.clamp(min=0)), high.where(sign >= 0, high.clamp(max=0)))
        return bounds, choices

    def _bound(self, roots: Tensor, intervals: Sequence[Enclosure], choices: Choices | None, steps: int) -> _Parts:
        """Bound parts, and choose the number to split each at: that whose chord, `-l u / (u - l)` above the kink, costs
        the bound most. Where no coefficient is negative, the positive ones count, too."""
        region, weights, constants = pick(self.region, roots), self.weights[roots], self.constants[roots]
        reach, walk = optimise_bounds(self.network, region, intervals, weights, constants, steps, choices)
        self.steps = tuple(walk.slopes)
        costs = [torch.zeros(len(roots), 0, dtype=torch.float64, device=roots.device)]
        for step in self.steps:
            tensors = intervals[step].lower, intervals[step].upper, walk.coefficients[step]
            low, high, coefficients = (tensor.reshape(len(roots), -1) for tensor in tensors)
            crossing = (low < 0) & (high > 0)
            height = -low * high / (high - low).where(crossing, 1.0)
            size = torch.where(coefficients < 0, -coefficients, POSITIVE * coefficients)
            costs.append((size * height).nan_to_num(0.0).where(crossing, 0.0))
        cost, place = torch.cat([*costs, costs[0].new_zeros(len(roots), 1)], dim=1).max(dim=1)

        def flat(values_by_step: Mapping[int, Tensor]) -> Tensor:
            tensors = [values_by_step.get(step, torch.zeros_like(walk.slopes[step])).detach() for step in self.steps]
            return torch.cat([values.reshape(len(roots), -1) for values in tensors] or [costs[0]], dim=1)

        signs, slopes, multipliers = map(flat, (walk.initial_choices.signs, walk.slopes, walk.multipliers))
        split_at = place.where(cost > 0, -1)
        reach = reach.minimum(region.radii)
        return _Parts(roots, reach, signs.to(torch.int8), slopes.float(), multipliers.float(), split_at)
