"""Proofs of positive margins around points, and the search for the largest proved radius."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from brittle.estimate import ORDER
from brittle.extensions.certificates.branching import Tree, branch_and_bound
from brittle.extensions.certificates.crown import MarginBounds, margin_bounds
from brittle.extensions.certificates.graph import Network
from brittle.extensions.certificates.operators import KINKED, MAXIMA
from brittle.extensions.certificates.region import Region
from brittle.measure.forward import Clean
from brittle.measure.rows import pick
from brittle.model.bounds import NONE, Bounds
from brittle.model.classifier import Classifier

FIRST = 1e-4  # first radius of the search, as a share of the scale: few neurons are unstable there; it guides the next
FIRST_SHARE = 0.25  # second radius, as a share of the reach of the first proof
FAR = 1e6  # largest radius of the search in units of the scale, where inputs have no bounds


Trial = Callable[[Tensor, Tensor, Tensor], MarginBounds]
"""Function of rows, `[K]`, a radius each, `[K]`, and a mask of margins, `[K, C]`, that returns the proofs of these."""


@dataclass
class Brackets:
    """The search for the radius up to which each margin of each point is proved.

    A proof for a ball of radius `R` bounds a margin by a linear function. It is positive within `reach`, so that the
    margin is positive within `min(R, reach)`, even where its bound over the whole ball is negative. With `m` the margin
    at the point and `s(R)` the bound, `(m - s(R)) / R` is close to a straight line: the next radius is where `s` would
    be 0 on the line through the two trials nearest to that. Margins already proved at a radius are left out there.
    Each radius was proved, whatever `s` does. Each attribute is `[K, C]`, those of two trials `[2, K, C]`.
    """

    margin: Tensor  # at the points
    low: Tensor  # the largest radius proved
    high: Tensor  # the smallest radius that the search need not go beyond; infinite before there is one
    radius: Tensor  # of the two trials whose line gives the next: the latest two on one side, or one on each
    fall: Tensor  # `(margin - score) / radius` of these trials
    good: Tensor  # True where the score of these trials was positive
    reach: Tensor  # of the last trial

    @classmethod
    def around(cls, margin: Tensor, low: Tensor | None = None) -> Brackets:
        """Return brackets without trials, with the proved radii `low`."""
        zeros, trials = torch.zeros_like(margin), margin.new_zeros(2, *margin.shape)
        low = zeros.clone() if low is None else low.clone()
        return cls(margin, low, torch.full_like(margin, math.inf), trials, trials.clone(), trials > 1, zeros)

    @property
    def proved_radius(self) -> Tensor:
        """Radius up to which all margins of a point are proved, `[K]`."""
        return self.low.min(dim=1).values

    def run(
        self,
        trial: Trial,
        scale: Tensor,
        bounded: bool,
        accuracy: float,
        steps: int,
        initial_radii: Tensor | None = None,
        candidates: Tensor | None = None,
    ) -> Tensor:
        """Search for the largest radius within which all margins are proved, `[K]`; 0 where there is none.

        A later run continues the earlier one.

        Where `bounded`, a ball of the radius `scale` holds all inputs. The search ends where the ends of the bracket
        are within `accuracy`, relatively, or after `steps`; it begins with `initial_radii` where they are positive, and
        includes the points `candidates`, by default all.
        """
        limit = scale if bounded else FAR * scale
        has_trials = (self.radius[0] > 0).any(dim=1)
        begin = self._next(accuracy).where(has_trials, 0.0 if initial_radii is None else initial_radii)
        has_initial = begin > 0
        radii = begin.where(has_initial, FIRST * scale).minimum(limit)
        positive = (self.margin > 0).all(dim=1) & (True if candidates is None else candidates)
        for step in range(steps):
            proved_radius = self.proved_radius
            is_wide = self.high.min(dim=1).values > proved_radius * (1 + accuracy)
            rows = (positive & is_wide & (proved_radius < limit)).nonzero()[:, 0]
            if not len(rows):
                break
            margin_mask = self.low[rows] < radii[rows, None]
            self._narrow(rows, radii[rows], margin_mask, trial(rows, radii[rows], margin_mask))
            radii = self._next(accuracy)
            if not step:
                is_unbracketed = ~has_initial & self.high.min(dim=1).values.isinf()
                second_radii = (FIRST_SHARE * self.reach.min(dim=1).values).maximum(self.proved_radius * (1 + accuracy))
                radii = radii.where(~is_unbracketed, second_radii)
            radii = radii.minimum(limit)
        return self.proved_radius

    def _narrow(self, rows: Tensor, radii: Tensor, margin_mask: Tensor, bounds: MarginBounds) -> None:
        row, kind = margin_mask.nonzero(as_tuple=True)
        score, reach = bounds.lower[row, kind], bounds.reach[row, kind]
        radii, at = radii[row], (rows[row], kind)
        is_positive = score > 0
        self.low[at] = self.low[at].maximum(radii.where(is_positive, radii.minimum(reach)))
        self.high[at] = self.high[at].minimum(radii.where(~is_positive, math.inf)).maximum(self.low[at])
        # The older of two on the same side goes; where the older is on the other side, it stays.
        is_same = self.good[0][at] == is_positive
        slot = torch.where(is_same | (self.radius[0][at] == 0), 0, 1)
        replaces_trial = is_same & (self.good[1][at] == is_positive) & (self.radius[0][at] > 0)
        for part in (self.radius, self.fall, self.good):
            part[1][at] = torch.where(replaces_trial, part[0][at], part[1][at])
        self.radius[slot, *at] = radii
        self.fall[slot, *at] = (self.margin[at] - score) / radii
        self.good[slot, *at] = is_positive
        self.reach[at] = reach

    def _next(self, accuracy: float) -> Tensor:
        """Return the next radii, inside the bracket of each point, `[K]`: where its smallest margin would become 0."""
        low, high = self.proved_radius, self.high.min(dim=1).values
        near_radius, far_radius = self.radius
        steeper = ((self.fall[0] - self.fall[1]) / (near_radius - far_radius)).nan_to_num(0.0, 0.0, 0.0).clamp(min=0)
        flat = self.fall[0] - steeper * near_radius
        # R (flat + steeper R) = margin, in the form that loses no digits.
        zeros = 2 * self.margin / (flat + (flat.square() + 4 * steeper * self.margin).sqrt())
        zeros = zeros.maximum(self.low).where(near_radius > 0, math.inf).nan_to_num(math.inf, math.inf)
        zero = zeros.min(dim=1).values
        edge = (high / low).sqrt().clamp(max=1 + accuracy / 2)
        inside = zero.maximum(low * edge).minimum(high / edge)
        largest_trial = near_radius.max(dim=1).values
        ahead = zero.maximum(low * (1 + accuracy)).minimum(3 * low.maximum(largest_trial * 0.1))
        middle = torch.where(high > 3 * low, (low * high).sqrt(), inside)
        middle = torch.where(low > 0, middle, high / 10)
        usable = zero.isfinite() & (low > 0)
        return torch.where(high.isinf(), ahead, torch.where(usable, inside, middle))


ROUNDING = 1e-6  # relative error of a class score in single precision that proofs allow for: 16 units in the last place
SLACK = 4.0  # allowance for rounding anywhere in the ball, as a multiple of the largest rounding error measured

SHARES = (0.03, 0.3, 1.0)
"""Inputs besides the point at which rounding is measured: shares of the step to inputs drawn from the bounds."""

ACCURACY = 4e-3  # relative distance between the largest proved and the least unproved radius at which the search ends
FAST_STEPS = 12  # most radii that are tried with bounds from intervals
FULL_STEPS = 12  # most radii that are tried with bounds from linear relaxation
COARSE, COARSE_STEPS = 1e-1, 2  # accuracy and most radii of the search before branch and bound
FAST_ACCURACY = {"fast": 1e-2, "middle": 1e-2, "full": 1e-1}  # accuracy of the search by intervals, by proof
AHEAD, FARTHER = 1.3, 2.0  # first radius of the full and of the middle search, in units of that proved by intervals


PASSES = 1950  # least budget of passes for a point: beyond it branch and bound tries no further radius and no split
TRIALS = 8  # least budget of passes for a point, in units of those of one radius by linear relaxation
MAX_TRIAL_PASSES = 600  # passes of one radius by linear relaxation beyond which a point gets no branch and bound
SHARE = 0.4  # share of the budget that the parts of a ball of one radius may take
ROUNDS = 8  # most radii that are tried by branch and bound
STRETCH = 1.13  # next radius of branch and bound, in units of the proved one, while proofs succeed
NARROW = 1.02  # ratio of the next radius to the proved one at which branch and bound ends
BRANCHED = 16  # points that are tried together by branch and bound


class Proof:
    """Linear lower bounds of margins in balls around points, less an allowance for rounding.

    `margin`, `[K, C]`, are those at the points less that allowance; `passes`, `[K]`, counts passes so far, as the
    classifier does, and `trial` those of the last radius by linear relaxation. Where `bounded`, no input farther away
    than the `diameter` counts.
    """

    def __init__(
        self, network: Network, classifier: Classifier, clean: Clean, rows: Tensor, norm: str, bounded: bool
    ) -> None:
        points, logits, decided = clean.inputs[rows].double(), clean.logits[rows].double(), decided_outputs(clean, rows)
        self.network, self.classifier, self.points, self.norm = network, classifier, points, norm
        self.bounds = classifier.bounds if bounded else NONE
        self.bounded = self.bounds.finite
        self.diameter = _diameter(classifier.bounds, points, norm)
        self.passes = torch.zeros(len(points), dtype=torch.int64, device=points.device)
        exact = network(points)
        if decided is None:
            self.weights, constants = class_margins(logits.argmax(dim=1), exact.shape[1])
            model_margins = torch.einsum("bkl,bl->bk", self.weights, logits)
        else:
            self.weights, constants = classifier.decision.linear_margins(decided, exact.shape[1])
            model_margins = -logits[:, 1:] - constants
        read = network.read(exact)
        exact_margins = torch.einsum("bkl,bl->bk", self.weights, exact)
        size = torch.einsum("bkl,bl->bk", self.weights.abs(), exact.abs().maximum(read.abs()))
        difference = model_margins - torch.einsum("bkl,bl->bk", self.weights, read)
        error = difference.abs().maximum(self._rounding_error()).max(dim=1, keepdim=True).values
        allowance = ROUNDING * size + SLACK * error
        self.constants = constants - allowance
        self.margin = exact_margins + self.constants
        self.trial = torch.zeros_like(self.passes)

    def _rounding_error(self) -> Tensor:
        """Measure the largest rounding error of each margin around the points, `[K, C]`; at a point it may be 0."""
        classifier, points = self.classifier.undecided, self.points
        low, high = self.classifier.bounds.reach(points)
        generator = torch.Generator().manual_seed(0)
        largest_error = torch.zeros(self.weights.shape[:2], dtype=torch.float64, device=points.device)
        for share in SHARES:
            uniform = torch.rand(points.shape[1:], generator=generator, dtype=torch.float64).to(points)
            neighbours = points + share * (low + uniform * (high - low) - points)
            neighbours = neighbours.to(classifier.dtype or torch.float32)
            exact = self.network.read(self.network(neighbours))
            with torch.no_grad():
                error = classifier.read(neighbours).double().reshape(exact.shape) - exact
            largest_error = largest_error.maximum(torch.einsum("bkl,bl->bk", self.weights, error.nan_to_num(0.0)).abs())
        if classifier is not self.classifier:
            self.classifier.count(len(SHARES) * len(points))
        self.passes += len(SHARES)
        return largest_error

    def largest(self, proof: str) -> Tensor:
        """Return the largest radius proved around each point, `[K]`."""
        fast_search = Brackets.around(self.margin)
        scale = self.diameter, self.bounded
        by_intervals, by_relaxation = (partial(self._bounds, tighten=tighten) for tighten in (False, True))
        fast_radii = fast_search.run(by_intervals, *scale, FAST_ACCURACY[proof], FAST_STEPS)
        if proof == "fast":
            return fast_radii
        full_search = Brackets.around(self.margin, fast_search.low)
        if proof == "middle":
            return full_search.run(by_relaxation, *scale, COARSE, COARSE_STEPS, FARTHER * fast_radii)
        operators = {layer.operator for layer in self.network.layers}
        branching = not self.network.row_by_row and bool(operators & KINKED) and not operators & MAXIMA
        if branching:
            full_search.run(by_relaxation, *scale, COARSE, COARSE_STEPS, AHEAD * fast_radii)
        is_expensive = self.trial > (MAX_TRIAL_PASSES if branching else -1)
        full_search.run(by_relaxation, *scale, ACCURACY, FULL_STEPS, AHEAD * fast_radii, is_expensive)
        if branching:
            self._branch(full_search.low, (TRIALS * self.trial).clamp(min=PASSES).where(~is_expensive, 0))
        return full_search.proved_radius

    def _branch(self, low: Tensor, budget: Tensor) -> None:
        """Raise the proved radius of each margin, `[K, C]`, by branch and bound at one radius after another: `STRETCH`
        times the proved one, after a failure half-way, until both are within `NARROW`, or at the `budget` of passes."""
        limit = self.diameter if self.bounded else torch.full_like(self.diameter, math.inf)
        failed = torch.full_like(limit, math.inf)
        for _ in range(ROUNDS):
            proved_radius = low.min(dim=1).values
            radii = (STRETCH * proved_radius).minimum((proved_radius * failed).sqrt()).minimum(limit)
            rows = ((proved_radius > 0) & (radii > NARROW * proved_radius) & (self.passes < budget)).nonzero()[:, 0]
            if not len(rows):
                break
            for block in rows.split(BRANCHED):
                self._branch_at(block, radii[block], low, budget[block])
            is_proved = low.min(dim=1).values[rows] >= radii[rows]
            failed[rows] = failed[rows].where(is_proved, radii[rows])

    def _branch_at(self, rows: Tensor, radii: Tensor, low: Tensor, budget: Tensor) -> None:
        margin_mask = low[rows] < radii[:, None]
        bounds = self._bounds(rows, radii, margin_mask, tighten=True)
        low[rows] = low[rows].maximum(bounds.reach.minimum(radii[:, None]).where(margin_mask, 0.0))
        at, kind = (low[rows] < radii[:, None]).nonzero(as_tuple=True)
        if not len(at):
            return
        region = pick(Region.around(self.points[rows], radii, self.norm, self.bounds), at)
        weights, constants = self.weights[rows][at, kind], self.constants[rows][at, kind]
        tree = Tree(self.network, region, pick(bounds.intervals, at), weights, constants, at)

        def count(points: Tensor, passes: Tensor) -> None:
            self._count(rows[points], passes // 2, passes // 2)

        reach = branch_and_bound(tree, (budget - self.passes[rows]).minimum((SHARE * budget).long()), count)
        low[rows[at], kind] = low[rows[at], kind].maximum(reach)

    def _bounds(self, rows: Tensor, radii: Tensor, margin_mask: Tensor, tighten: bool) -> MarginBounds:
        """Return proofs for balls of `radii` around `rows`; `tighten` bounds layer inputs by linear relaxation, too."""
        region = Region.around(self.points[rows], radii, self.norm, self.bounds)
        bounds = margin_bounds(self.network, region, self.weights[rows], self.constants[rows], margin_mask, tighten)
        self._count(rows, torch.ones_like(rows), bounds.functions)
        if tighten:
            self.trial[rows] = bounds.functions + 1
        lower = bounds.lower.nan_to_num(-torch.inf, torch.inf, -torch.inf)
        return replace(bounds, lower=lower, reach=bounds.reach.nan_to_num(0.0, torch.inf))

    def _count(self, rows: Tensor, forward: Tensor, backward: Tensor) -> None:
        self.passes.index_add_(0, rows, forward + backward)
        self.classifier.count(int(forward.sum()), int(backward.sum()))


def class_margins(predicted: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Return weights and constants of `z_t - z_j` for each class `j` but `t`, `[B, C - 1, C]` and `[B, C - 1]`."""
    identity = torch.eye(classes, dtype=torch.float64, device=predicted.device)
    is_predicted = one_hot(predicted, classes).double()
    rivals = identity.expand(len(predicted), -1, -1)[(1 - is_predicted).bool()]
    weights = is_predicted[:, None] - rivals.view(len(predicted), classes - 1, classes)
    return weights, weights.new_zeros(weights.shape[:2])


def _diameter(bounds: Bounds, points: Tensor, norm: str) -> Tensor:
    """Return the largest distance of two inputs within the bounds; without finite ones a scale of each point, `[K]`."""
    order = ORDER[norm]
    if bounds.pair is not None:
        size = (bounds.pair[1] - bounds.pair[0]) * points[0].numel() ** (1 / order)
        return torch.full((len(points),), size, dtype=torch.float64, device=points.device)
    low, high = bounds.reach(points)
    return torch.linalg.vector_norm((high - low).expand_as(points).flatten(1), order, dim=1)


def decided_outputs(clean: Clean, rows: Tensor) -> Tensor | None:
    """Return the decided outputs of `rows`, where a decision is no class; numbers in double precision."""
    decided = None if clean.extra_inputs is None else clean.extra_inputs.decided
    if decided is None:
        return None
    return decided[rows].double() if decided.is_floating_point() else decided[rows]
