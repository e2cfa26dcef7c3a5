"""Lines below rectifiers, and multipliers of what is known of their signs, chosen for what they bound (alpha, beta)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.measure.certified.crown import Walk
from brittle.measure.certified.graph import Network
from brittle.measure.certified.region import Enclosure, Region
from brittle.measure.certified.relaxations import Line, Lines, plain

RATE = 0.1
"""First length of a step, as a share of the range of a slope; the last is a tenth of it."""


@dataclass(frozen=True)
class Choices:
    """What is chosen at each step of two straight pieces, by its number in the walk; `[P, *shape]` each.

    Attributes:
        slopes: of the line below an unstable number, as a share of the way between its two pieces, in [0, 1].
        signs: 1 where what enters is at least 0, -1 where it is at most 0, by assumption; 0 where nothing is assumed.
        multipliers: of `sign y` for what enters, `y`, where a sign is assumed; at least 0.
    """

    slopes: Mapping[int, Tensor]
    signs: Mapping[int, Tensor]
    multipliers: Mapping[int, Tensor]


@dataclass(frozen=True)
class Chosen:
    """The best linear functions found.

    Attributes:
        lower: their minima over the regions, `[P]`.
        reach: the distances within which they are positive, `[P]`.
        choices: the last ones.
        coefficients: of the last functions on what leaves each step of two pieces, `[P, *shape]` by its number.
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

    Args:
        network: the layers, of which the rows are the first axis throughout.
        region: the inputs, `P` rows.
        kept: what a walk over these regions kept, with the assumptions.
        functions: `w`, `[P, L]`.
        constants: `b`, `[P]`.
        steps: gradient steps; a pass forward and one backward each, beside one of each to begin with.
        choices: to begin with.
    """
    walk = _FreeWalk(region, kept, choices)
    outputs = walk.logits(network).value
    level, best, gradients = constants, torch.full_like(constants, -torch.inf), torch.zeros_like(region.points)
    moved = [*walk.slopes.values(), *walk.multipliers.values()]
    steps = steps if moved else 0
    adam = torch.optim.Adam(moved or [torch.zeros(1)], lr=RATE, betas=(0.7, 0.9), maximize=True)
    for step in range(steps + 1):
        last = step == steps
        slopes, beside = torch.autograd.grad(
            outputs, (walk.inputs, walk.beside), functions, retain_graph=True, create_graph=not last,
            materialize_grads=True,
        )  # fmt: skip
        levels = torch.einsum("bn,bn->b", functions, outputs.detach()) + beside + constants
        lower = levels + region.least(slopes[None])[0]
        better = lower.detach() > best
        best = torch.where(better, lower.detach(), best)
        level = torch.where(better, levels.detach(), level)
        gradients = torch.where(better.view(-1, *[1] * (slopes.dim() - 1)), slopes.detach(), gradients)
        if last:
            break
        for one, slope in zip(moved, torch.autograd.grad(lower.sum(), moved, allow_unused=True), strict=True):
            one.grad = slope
        adam.param_groups[0]["lr"] = RATE * 0.1 ** (step / steps)
        adam.step()
        walk.project()
    reach = region.reach(level[None], gradients[None])[0].where(best > -torch.inf, 0.0)
    return Chosen(best, reach, walk.choices, walk.coefficients)


class _FreeWalk(Walk):
    """A walk with given bounds on what enters each layer, and lines that can still be moved."""

    def __init__(self, region: Region, kept: Sequence[Enclosure], choices: Choices | None) -> None:
        super().__init__(region)
        self.given, self.begun = kept, choices or Choices({}, {}, {})
        self.slopes: dict[int, Tensor] = {}
        self.multipliers: dict[int, Tensor] = {}
        self.coefficients: dict[int, Tensor] = {}

    @property
    def choices(self) -> Choices:
        """As they are now."""
        slopes, multipliers = (
            {step: one.detach() for step, one in some.items()} for some in (self.slopes, self.multipliers)
        )
        return Choices(slopes, self.begun.signs, multipliers)

    def keep(self, interval: Enclosure, cut: Any) -> Enclosure:
        """What is given."""
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

    def project(self) -> None:
        """Bring the choices back to where each of them gives a bound."""
        with torch.no_grad():
            for one in self.slopes.values():
                one.clamp_(0, 1)
            for one in self.multipliers.values():
                one.clamp_(min=0)


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
