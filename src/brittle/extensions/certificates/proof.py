"""How far margins are proved positive around some points, and the search for that radius."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from brittle.estimate import ORDER
from brittle.extensions.certificates.branching import Roots, branched
from brittle.extensions.certificates.crown import MarginBounds, margin_bounds
from brittle.extensions.certificates.graph import Network
from brittle.extensions.certificates.operators import KINKED, MAXIMA
from brittle.extensions.certificates.region import Region
from brittle.measure.rows import pick
from brittle.model.bounds import NONE, Bounds
from brittle.model.classifier import Classifier

FIRST = 1e-4
"""The first radius tried, as a share of the scale: few neurons are unstable there, and it shows where to look."""

FIRST_SHARE = 0.25
"""The second, as a share of where the proof of the first would end."""

FAR = 1e6
"""Where inputs have no bounds, how many times the scale is tried at most."""


Trial = Callable[[Tensor, Tensor, Tensor], MarginBounds]
"""The proofs for balls around some rows, `[K]`, of a radius each, `[K]`, of the margins that are wanted, `[K, C]`."""


@dataclass
class Brackets:
    """The search for the radius up to which each margin of each point is proved.

    A proof for a ball of radius `R` bounds a margin by a linear function. It is positive within `reach`, so that the
    margin is positive within `min(R, reach)`, even where its bound over the whole ball is negative. With `m` the margin
    at the point and `s(R)` the bound, `(m - s(R)) / R` is close to a straight line: the next radius is where `s` would
    be 0 on the line through the two trials nearest to that. Margins that are proved at a radius already are not asked
    for there. Each radius was proved, whatever `s` does.

    Each attribute is `[K, C]`, those of two trials `[2, K, C]`.

    Attributes:
        margin: at the points.
        low: the largest radius proved.
        high: the smallest radius that the search need not go beyond; infinite before there is one.
        radius: of the two trials on whose line the next is found: the latest two on one side, or one on each.
        fall: `(margin - score) / radius` there.
        good: whether the score was positive there.
        reach: what the last trial reached.
    """

    margin: Tensor
    low: Tensor
    high: Tensor
    radius: Tensor
    fall: Tensor
    good: Tensor
    reach: Tensor

    @classmethod
    def around(cls, margin: Tensor, low: Tensor | None = None) -> Brackets:
        """Nothing known but what is proved already."""
        nothing, two = torch.zeros_like(margin), margin.new_zeros(2, *margin.shape)
        low = nothing.clone() if low is None else low.clone()
        return cls(margin, low, torch.full_like(margin, math.inf), two, two.clone(), two > 1, nothing)

    @property
    def proved(self) -> Tensor:
        """The radius up to which all margins of a point are proved, `[K]`."""
        return self.low.min(dim=1).values

    def run(
        self,
        trial: Trial,
        scale: Tensor,
        bounded: bool,
        accuracy: float,
        steps: int,
        first: Tensor | None = None,
        among: Tensor | None = None,
    ) -> Tensor:
        """The largest radius found within which all margins are proved, `[K]`; 0 where there is none.

        A later run goes on where the one before it ended.

        Where `bounded`, a ball of the radius `scale` holds all inputs. The search ends where the ends of the bracket
        are this near, relatively, or after so many steps; it begins with the radii `first` where they are positive, and
        tries the points `among` all.
        """
        limit = scale if bounded else FAR * scale
        tried = (self.radius[0] > 0).any(dim=1)
        begin = self._next(accuracy).where(tried, 0.0 if first is None else first)
        known = begin > 0
        radii = begin.where(known, FIRST * scale).minimum(limit)
        positive = (self.margin > 0).all(dim=1) & (True if among is None else among)
        for step in range(steps):
            proved = self.proved
            wide = positive & (self.high.min(dim=1).values > proved * (1 + accuracy)) & (proved < limit)
            rows = wide.nonzero()[:, 0]
            if not len(rows):
                break
            wanted = self.low[rows] < radii[rows, None]
            self._narrow(rows, radii[rows], wanted, trial(rows, radii[rows], wanted))
            radii = self._next(accuracy)
            if not step:
                begun = ~known & self.high.min(dim=1).values.isinf()
                further = (FIRST_SHARE * self.reach.min(dim=1).values).maximum(self.proved * (1 + accuracy))
                radii = radii.where(~begun, further)
            radii = radii.minimum(limit)
        return self.proved

    def _narrow(self, rows: Tensor, radii: Tensor, wanted: Tensor, found: MarginBounds) -> None:
        """Note what was found at `radii`."""
        row, kind = wanted.nonzero(as_tuple=True)
        score, reach = found.lower[row, kind], found.reach[row, kind]
        radii, at = radii[row], (rows[row], kind)
        good = score > 0
        self.low[at] = self.low[at].maximum(radii.where(good, radii.minimum(reach)))
        self.high[at] = self.high[at].minimum(radii.where(~good, math.inf)).maximum(self.low[at])
        # The older of two on the same side goes; where the older is on the other side, it stays.
        slot = torch.where((self.good[0][at] == good) | (self.radius[0][at] == 0), 0, 1)
        same = (self.good[0][at] == good) & (self.good[1][at] == good) & (self.radius[0][at] > 0)
        for part in (self.radius, self.fall, self.good):
            part[1][at] = torch.where(same, part[0][at], part[1][at])
        self.radius[slot, *at] = radii
        self.fall[slot, *at] = (self.margin[at] - score) / radii
        self.good[slot, *at] = good
        self.reach[at] = reach

    def _next(self, accuracy: float) -> Tensor:
        """The radii to try next, inside the bracket of each point, `[K]`: where the first margin would end."""
        low, high = self.proved, self.high.min(dim=1).values
        near, far = self.radius
        steeper = ((self.fall[0] - self.fall[1]) / (near - far)).nan_to_num(0.0, 0.0, 0.0).clamp(min=0)
        flat = self.fall[0] - steeper * near
        # R (flat + steeper R) = margin, in the form that loses no digits.
        zeros = 2 * self.margin / (flat + (flat.square() + 4 * steeper * self.margin).sqrt())
        zeros = zeros.maximum(self.low).where(near > 0, math.inf).nan_to_num(math.inf, math.inf)
        zero = zeros.min(dim=1).values
        edge = (high / low).sqrt().clamp(max=1 + accuracy / 2)
        inside = zero.maximum(low * edge).minimum(high / edge)
        tried = near.max(dim=1).values
        ahead = zero.maximum(low * (1 + accuracy)).minimum(3 * low.maximum(tried * 0.1))
        middle = torch.where(high > 3 * low, (low * high).sqrt(), inside)
        middle = torch.where(low > 0, middle, high / 10)
        usable = zero.isfinite() & (low > 0)
        return torch.where(high.isinf(), ahead, torch.where(usable, inside, middle))


ROUNDING = 1e-6
"""Relative error of a class score in single precision that a proof allows for: 16 units in the last place."""

SLACK = 4.0
"""How many times the largest rounding error found is allowed for anywhere in the ball."""

SHARES = (0.03, 0.3, 1.0)
"""Where rounding is looked at besides the point: shares of the way to inputs drawn from the bounds."""

ACCURACY = 4e-3
"""Relative distance between the largest radius that was proved and the smallest that was not, where the search ends."""

FAST_STEPS = 12
"""Most radii that are tried with bounds from intervals."""

FULL_STEPS = 12
"""Most radii that are tried with bounds from linear relaxation."""

COARSE, COARSE_STEPS = 1e-1, 2
"""The same of both before branch and bound."""

FAST_ACCURACY = {"fast": 1e-2, "middle": 1e-2, "full": 1e-1}
"""The same with bounds from intervals, by proof."""

AHEAD, FARTHER = 1.3, 2.0
"""The first radius of the full search, and of the middle one, which has few: in what was proved with intervals."""


PASSES = 1950
"""Passes for a point beyond which no further radius is tried by branch and bound, and no part is split, at least."""

TRIALS = 8
"""The same at least, in what one radius takes by linear relaxation."""

MOST_TRIAL = 600
"""Passes of one radius by linear relaxation beyond which nothing is done by branch and bound."""

SHARE = 0.4
"""Of these passes, what may go to the parts of a ball of one radius."""

ROUNDS = 8
"""Most radii that are tried by branch and bound."""

STRETCH = 1.13
"""Each of them, in what was proved before, while that succeeds."""

NARROW = 1.02
"""The same where it ends."""

BRANCHED = 16
"""Points that are tried together by branch and bound."""


class Proof:
    """Linear lower bounds of margins in balls around some points, beyond what rounding may take.

    Attributes:
        bounded: whether no input farther away than the diameter counts.
        diameter: largest distance of two inputs within the classifier's bounds; without bounds a scale of each point,
            `[K]`.
        margin: each margin at the points, less the allowance for rounding, `[K, C]`.
        passes: what was spent so far, `[K]`; the classifier counts it, too.
        trial: what the last radius by linear relaxation took, `[K]`.
    """

    def __init__(
        self,
        network: Network,
        classifier: Classifier,
        points: Tensor,
        logits: Tensor,
        decided: Tensor | None,
        norm: str,
        bounded: bool,
    ) -> None:
        self.network, self.classifier, self.points, self.norm = network, classifier, points, norm
        self.bounds = classifier.bounds if bounded else NONE
        self.bounded = self.bounds.finite
        self.diameter = _diameter(classifier.bounds, points, norm)
        self.passes = torch.zeros(len(points), dtype=torch.int64, device=points.device)
        exact = network(points)
        if decided is None:
            self.weights, constants = leads(logits.argmax(dim=1), exact.shape[1])
            given = torch.einsum("bkl,bl->bk", self.weights, logits)
        else:
            self.weights, constants = classifier.decision.linear_margins(decided, exact.shape[1])
            given = -logits[:, 1:] - constants
        read = network.read(exact)
        found = torch.einsum("bkl,bl->bk", self.weights, exact)
        size = torch.einsum("bkl,bl->bk", self.weights.abs(), exact.abs().maximum(read.abs()))
        wrong = given - torch.einsum("bkl,bl->bk", self.weights, read)
        error = wrong.abs().maximum(self._rounding()).max(dim=1, keepdim=True).values
        allowance = ROUNDING * size + SLACK * error
        self.constants = constants - allowance
        self.margin = found + self.constants
        self.trial = torch.zeros_like(self.passes)

    def _rounding(self) -> Tensor:
        """The largest rounding error of each margin at inputs around the points, `[K, C]`; one forward pass for each.
        At the point itself there may be none by chance, as at zeros."""
        classifier, points = self.classifier.undecided, self.points
        low, high = self.classifier.bounds.reach(points)
        generator = torch.Generator().manual_seed(0)
        worst = torch.zeros(self.weights.shape[:2], dtype=torch.float64, device=points.device)
        for share in SHARES:
            uniform = torch.rand(points.shape[1:], generator=generator, dtype=torch.float64).to(points)
            around = points + share * (low + uniform * (high - low) - points)
            around = around.to(classifier.dtype or torch.float32)
            exact = self.network.read(self.network(around))
            with torch.no_grad():
                error = classifier.read(around).double().reshape(exact.shape) - exact
            worst = worst.maximum(torch.einsum("bkl,bl->bk", self.weights, error.nan_to_num(0.0)).abs())
        if classifier is not self.classifier:
            self.classifier.count(len(SHARES) * len(points))
        self.passes += len(SHARES)
        return worst

    def largest(self, proof: str) -> Tensor:
        """The largest radius proved around each point, `[K]`."""
        quick = Brackets.around(self.margin)
        scale = self.diameter, self.bounded
        by_intervals, by_relaxation = (partial(self._bounds, tighten=tighten) for tighten in (False, True))
        first = quick.run(by_intervals, *scale, FAST_ACCURACY[proof], FAST_STEPS)
        if proof == "fast":
            return first
        full = Brackets.around(self.margin, quick.low)
        if proof == "middle":
            return full.run(by_relaxation, *scale, COARSE, COARSE_STEPS, FARTHER * first)
        operators = {layer.operator for layer in self.network.layers}
        branching = not self.network.alone and bool(operators & KINKED) and not operators & MAXIMA
        if branching:
            full.run(by_relaxation, *scale, COARSE, COARSE_STEPS, AHEAD * first)
        dear = self.trial > (MOST_TRIAL if branching else -1)
        full.run(by_relaxation, *scale, ACCURACY, FULL_STEPS, AHEAD * first, dear)
        if branching:
            self._branch(full.low, (TRIALS * self.trial).clamp(min=PASSES).where(~dear, 0))
        return full.proved

    def _branch(self, low: Tensor, budget: Tensor) -> None:
        """Raise the radii that were proved of each margin, `[K, C]`, by branch and bound at one radius after another.

        The first is `STRETCH` times what was proved, and so is the next where that succeeds; where it fails, the next
        is half-way between both. It ends within `NARROW`, or where a point has had the passes of its `budget`, `[K]`.
        """
        limit = self.diameter if self.bounded else torch.full_like(self.diameter, math.inf)
        failed = torch.full_like(limit, math.inf)
        for _ in range(ROUNDS):
            proved = low.min(dim=1).values
            radii = (STRETCH * proved).minimum((proved * failed).sqrt()).minimum(limit)
            rows = ((proved > 0) & (radii > NARROW * proved) & (self.passes < budget)).nonzero()[:, 0]
            if not len(rows):
                break
            for some in rows.split(BRANCHED):
                self._branch_at(some, radii[some], low, budget[some])
            good = low.min(dim=1).values[rows] >= radii[rows]
            failed[rows] = failed[rows].where(good, radii[rows])

    def _branch_at(self, rows: Tensor, radii: Tensor, low: Tensor, budget: Tensor) -> None:
        wanted = low[rows] < radii[:, None]
        found = self._bounds(rows, radii, wanted, tighten=True)
        low[rows] = low[rows].maximum(found.reach.minimum(radii[:, None]).where(wanted, 0.0))
        at, kind = (low[rows] < radii[:, None]).nonzero(as_tuple=True)
        if not len(at):
            return
        region = pick(Region.around(self.points[rows], radii, self.norm, self.bounds), at)
        weights, constants = self.weights[rows][at, kind], self.constants[rows][at, kind]
        margins = Roots(self.network, region, pick(found.kept, at), weights, constants, at)

        def count(points: Tensor, passes: Tensor) -> None:
            self._count(rows[points], passes // 2, passes // 2)

        better = branched(margins, (budget - self.passes[rows]).minimum((SHARE * budget).long()), count)
        low[rows[at], kind] = low[rows[at], kind].maximum(better)

    def _bounds(self, rows: Tensor, radii: Tensor, wanted: Tensor, tighten: bool) -> MarginBounds:
        """Proofs for balls of `radii` around `rows`; to `tighten`, linear relaxation bounds what enters each layer."""
        region = Region.around(self.points[rows], radii, self.norm, self.bounds)
        found = margin_bounds(self.network, region, self.weights[rows], self.constants[rows], wanted, tighten)
        self._count(rows, torch.ones_like(rows), found.functions)
        if tighten:
            self.trial[rows] = found.functions + 1
        lower = found.lower.nan_to_num(-torch.inf, torch.inf, -torch.inf)
        return replace(found, lower=lower, reach=found.reach.nan_to_num(0.0, torch.inf))

    def _count(self, rows: Tensor, forward: Tensor, backward: Tensor) -> None:
        self.passes.index_add_(0, rows, forward + backward)
        self.classifier.count(int(forward.sum()), int(backward.sum()))


def leads(predicted: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Weights and constants of `z_t - z_j` for each class `j` but `t`, `[B, C - 1, C]` and `[B, C - 1]`."""
    identity = torch.eye(classes, dtype=torch.float64, device=predicted.device)
    own = one_hot(predicted, classes).double()
    others = identity.expand(len(predicted), -1, -1)[(1 - own).bool()].view(len(predicted), classes - 1, classes)
    weights = own[:, None] - others
    return weights, weights.new_zeros(weights.shape[:2])


def _diameter(bounds: Bounds, points: Tensor, norm: str) -> Tensor:
    """Largest distance of two inputs within the bounds; where these are not finite a scale of each point, `[K]`."""
    order = ORDER[norm]
    if bounds.pair is not None:
        size = (bounds.pair[1] - bounds.pair[0]) * points[0].numel() ** (1 / order)
        return torch.full((len(points),), size, dtype=torch.float64, device=points.device)
    low, high = bounds.reach(points)
    return torch.linalg.vector_norm((high - low).expand_as(points).flatten(1), order, dim=1)
