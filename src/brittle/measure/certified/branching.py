"""Branch and bound over the signs of what enters rectifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from brittle.measure.certified.graph import Network
from brittle.measure.certified.region import Enclosure, Region
from brittle.measure.certified.slopes import Choices, Chosen, optimised

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

    Attributes:
        network: the layers.
        region: the ball of each.
        kept: bounds over the balls of what enters each nonlinear step.
        weights: the margin as a function of the output, `[M, L]`.
        constants: its constant, `[M]`.
        point: whose it is, `[M]`; points are numbered from 0.
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

    Attributes:
        root: which margin, `[P]`.
        reach: how far from the point it is proved positive in the part, `[P]`.
        signs: assumed of each number, `[P, n]`, int8; 0 where nothing is.
        slopes: last choices, `[P, n]`, float32; see `Choices`.
        multipliers: last choices, `[P, n]`, float32.
        next: the number to split at, `[P]`; -1 where none is unstable.
    """

    root: Tensor
    reach: Tensor
    signs: Tensor
    slopes: Tensor
    multipliers: Tensor
    next: Tensor

    def at(self, rows: Tensor) -> _Parts:
        return _Parts(*(getattr(self, one.name)[rows] for one in fields(self)))

    @classmethod
    def joined(cls, some: Sequence[_Parts]) -> _Parts:
        return cls(*(torch.cat([getattr(part, one.name) for part in some]) for one in fields(cls)))

    def and_also(self, other: _Parts) -> _Parts:
        return _Parts.joined((self, other))


def branched(margins: Roots, budget: Tensor, count: Callable[[Tensor, Tensor], None]) -> Tensor:
    """How far from its point each margin is proved positive, at most as far as its ball goes, `[M]`.

    A margin that no linear function proves positive over the whole ball is proved in parts, in each of which the sign
    of what enters some rectifiers is assumed: the parts that reach least are split in two at the number whose
    relaxation costs their bound most. All parts together are the ball, so that the least of their reaches is proved.

    Source: Wang et al., Beta-CROWN (NeurIPS 2021), section 3; Bunel et al., Branch and bound for piecewise linear
    neural network verification (JMLR 2020), section 5.2, for the choice of the number.

    Args:
        margins: what is to be proved.
        budget: passes for each point, `[points]`; the last parts of a point may go beyond it.
        count: told of the points and the passes, half forward and half backward, that each spent.
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
        halves = tree.halves(parts.at(chosen))
        note(margins.point[halves.root], LEAF_STEPS)
        rest = torch.ones_like(parts.root, dtype=torch.bool)
        rest[chosen] = False
        parts = parts.at(rest.nonzero()[:, 0]).and_also(halves)
        parts = parts.at((parts.reach < radii[parts.root]).nonzero()[:, 0])
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
        found = []
        for rows in torch.arange(len(self.margins.point), device=self.margins.point.device).split(self.together):
            chosen = self._optimised(rows, self._kept(rows), None, ROOT_STEPS)
            self.steps = tuple(chosen.choices.slopes)
            signs = {step: torch.zeros_like(one) for step, one in chosen.choices.slopes.items()}
            found.append(
                self._noted(rows, self._kept(rows), chosen, replace(chosen.choices, signs=signs, multipliers=signs))
            )
        parts = _Parts.joined(found)
        return parts.at((parts.reach < self.margins.region.radii[parts.root]).nonzero()[:, 0])

    def halves(self, parts: _Parts) -> _Parts:
        """Both halves of each part."""
        count = len(parts.root)
        both = parts.at(torch.arange(count, device=parts.root.device).repeat(2))
        both.signs[:count].scatter_(1, parts.next[:, None], 1)
        both.signs[count:].scatter_(1, parts.next[:, None], -1)
        found = []
        for rows in torch.arange(2 * count, device=parts.root.device).split(self.together):
            some = both.at(rows)
            kept, choices = self._assumed(some)
            chosen = self._optimised(some.root, kept, choices, LEAF_STEPS)
            found.append(self._noted(some.root, kept, chosen, chosen.choices))
        halves = _Parts.joined(found)
        # What holds in the whole holds in its halves.
        return replace(halves, reach=halves.reach.maximum(both.reach))

    def _kept(self, roots: Tensor) -> list[Enclosure]:
        return [one.map(lambda end: end[roots]) for one in self.margins.kept]

    def _assumed(self, parts: _Parts) -> tuple[list[Enclosure], Choices]:
        """The bounds with the assumptions of each part, and its choices by step."""
        kept = self._kept(parts.root)
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

    def _optimised(self, roots: Tensor, kept: Sequence[Enclosure], choices: Choices | None, steps: int) -> Chosen:
        network, region = self.margins.network, self.margins.region.at(roots)
        return optimised(
            network, region, kept, self.margins.weights[roots], self.margins.constants[roots], steps, choices
        )

    def _noted(self, roots: Tensor, kept: Sequence[Enclosure], chosen: Chosen, choices: Choices) -> _Parts:
        """The parts with what was found for them, and where to split them next.

        An unstable number whose coefficient is negative costs its bound up to that times `-l u / (u - l)`, the height
        of the chord above the kink. Where none is negative, the others count, too.
        """
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
            return torch.cat([some[step].reshape(len(roots), -1) for step in self.steps] or [costs[0]], dim=1)

        signs, slopes, multipliers = flat(choices.signs), flat(choices.slopes), flat(choices.multipliers)
        nearer = place.where(cost > 0, -1)
        radii = self.margins.region.radii[roots]
        reach = chosen.reach.minimum(radii)
        return _Parts(roots, reach, signs.to(torch.int8), slopes.float(), multipliers.float(), nearer)
