"""How far from each point a classifier provably keeps its prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.decisions import Decision
from brittle.measure.base import Measurement, NetworkTraits, Passes
from brittle.measure.certified.crown import MarginBounds, Region, linear_bounds, margin_bounds
from brittle.measure.certified.graph import Network, UnsupportedLayer
from brittle.measure.certified.tracing import build_network
from brittle.measure.forward import Clean
from brittle.model.bounds import NONE, Bounds
from brittle.model.classifier import Classifier
from brittle.norms import ORDER, check_norm

ACCURACY = 2e-3
"""Relative distance between the largest radius that was proved and the smallest that was not, where the search ends."""

STEPS = 24
"""Most radii that are tried for a point."""

RADII = 12
"""Radii that are tried for a point on average."""

ROUNDING = 1e-6
"""Relative error of a class score in single precision that a proof allows for: 16 units in the last place."""

SLACK = 4.0
"""How many times the rounding error found at the point is allowed for anywhere in the ball."""

AGREEMENT = 1e-3
"""Largest relative distance between the classifier's scores and those of its layers in double precision."""

FIRST = 1e-4
"""The first radius tried, as a share of the diameter: the slope of the margin shows where to look next."""

FIRST_SHARE = 0.5
"""The second, as a share of where the margin would end with that slope."""

BLOCK_NUMBERS = 2**16
"""Input numbers of the points that are searched together."""

Score = Callable[[Tensor, Tensor], Tensor]
"""The proved margin of some rows, `[K]`, at a radius each, `[K]`."""


@dataclass(frozen=True)
class CertifiedRadius:
    """The largest radius for which no other prediction was proved possible.

    Attributes:
        radius: `[B]`, float64, in the classifier's units; 0 where nothing could be proved.
        passes: passes per point, `[B]`, int64: the clean pass, and for each radius that was tried one forward pass and
            one backward pass per linear function that was bounded. One of a neuron inside goes back from there only.
        unsupported: what the bounds could not be sent through, such as `softmax`; the radius is 0 everywhere then.
    """

    radius: Tensor
    passes: Tensor
    unsupported: str | None = None


@dataclass(frozen=True)
class Certified(Measurement):
    """The largest `r` for which `min_{|d| <= r} z_t(x + d) - z_j(x + d) > 0` is proved for all classes `j`.

    `t` is the predicted class. With another decision it is the same for its margins, where these are linear in what the
    model returns (`Decision.linear`; of `custom` nothing is proved). The minima are bounded from below by linear
    relaxation (CROWN), so the true margin is at least `radius`; it is equal, up to `ACCURACY`, for a network without
    nonlinear layers and not `bounded`. The radius is searched by secants and halvings; each one tried is a proof of its
    own.

    Bounds are computed in double precision for the layers in exact arithmetic. A margin counts as positive above
    `ROUNDING (|z_t| + |z_j|)` plus `SLACK` times the difference between the classifier's scores and the exact ones at
    the point. This allows for the rounding of a network that runs in single precision by its size at the point; it is
    no bound on the rounding elsewhere.

    Supported are the layers of `operators` and `composites`: affine ones, activations of one number, products of two
    values, softmax, attention, normalisation over each row, and maxima. `unsupported` names the first other one.

    Source: Zhang, Weng, Chen, Hsieh, Daniel, Efficient neural network robustness certification with general activation
    functions (NeurIPS 2018), section 3.

    Attributes:
        norm: `linf`, the largest change of one input number, `l2`, the Euclidean distance, or `l1`, the sum of the
            changes.
        bounded: only inputs inside the classifier's bounds count.
    """

    norm: str = "linf"
    bounded: bool = True

    differentiates: ClassVar[bool] = False
    reads_layers: ClassVar[bool] = True
    cost_varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_norm(self.norm)

    def cost(self, network: NetworkTraits) -> Passes:
        """That of `RADII` radii, whose margins to all classes are bounded one by one."""
        return Passes(RADII, RADII * network.classes)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[CertifiedRadius]:
        """The radii of `needs`, in blocks of points."""
        try:
            if clean.aside is not None and (clean.aside.tensors or clean.aside.varies is not None):
                raise UnsupportedLayer("points of several tensors, or with coordinates that do not vary")
            if not classifier.decision.linear:
                raise UnsupportedLayer(f"the decision {classifier.decision.label}, which is no linear function")
            network = build_network(classifier, clean.inputs)
            usable = _usable(clean)
            _check_agreement(network, clean, usable, classifier.decision)
            return [_radii(need, network, classifier, clean, usable) for need in needs]
        except UnsupportedLayer as layer:
            passes = torch.full_like(clean.predicted, clean.passes)
            nothing = torch.zeros(len(passes), dtype=torch.float64, device=passes.device)
            return [CertifiedRadius(nothing, passes, str(layer)) for _ in needs]


def _usable(clean: Clean) -> Tensor:
    """The points that have one predicted class, `[K]`."""
    finite = clean.inputs.flatten(1).isfinite().all(dim=1) & clean.finite
    return (finite & ~clean.tied).nonzero()[:, 0]


def _check_agreement(network: Network, clean: Clean, usable: Tensor, decision: Decision) -> None:
    """Refuse layers that do not compute what the classifier does, or whose rows depend on each other."""
    for rows in (usable[:1], *usable.split(clean.rows)) if len(usable) else ():
        given, exact = clean.logits[rows].double(), network(clean.inputs[rows])
        if exact.dim() != 2:
            raise UnsupportedLayer(f"an output of shape {list(exact.shape)}")
        if clean.aside is not None and clean.aside.decided is not None:
            exact = decision.as_logits(exact, _known(clean.aside.decided[rows]))
        if given.shape != exact.shape or ((given - exact).abs() > AGREEMENT * (1 + given.abs())).any():
            raise UnsupportedLayer("layers that do not reproduce the classifier's scores")


def _radii(need: Certified, network: Network, classifier: Classifier, clean: Clean, usable: Tensor) -> CertifiedRadius:
    radius = torch.zeros(len(clean.logits), dtype=torch.float64, device=clean.logits.device)
    passes = torch.full_like(clean.predicted, clean.passes)
    for rows in usable.split(max(1, BLOCK_NUMBERS // clean.inputs[0].numel())) if len(usable) else ():
        decided = None if clean.aside is None or clean.aside.decided is None else _known(clean.aside.decided[rows])
        proof = _Proof(need, network, classifier, clean.inputs[rows].double(), clean.logits[rows].double(), decided)
        # One last unit below, for what the additions of a distance lose.
        radius[rows] = largest(proof, proof.rows, proof.diameter, proof.bounded) * (1 - ROUNDING)
        passes[rows] += proof.passes
    return CertifiedRadius(radius, passes)


def _known(decided: Tensor) -> Tensor:
    """What was decided, in double precision where it is numbers."""
    return decided.double() if decided.is_floating_point() else decided


class _Proof:
    """Smallest margin that is proved around some points, beyond what rounding may take.

    Attributes:
        rows: numbers of the points, `[K]`.
        margins: weights and constants of the margins of another decision than the predicted class, or None.
        bounded: whether no input farther away than the diameter counts.
        diameter: largest distance of two inputs within the classifier's bounds; without bounds a scale of each point.
        passes: what was spent so far, `[K]`; the classifier counts it, too.
    """

    def __init__(
        self,
        need: Certified,
        network: Network,
        classifier: Classifier,
        points: Tensor,
        logits: Tensor,
        decided: Tensor | None,
    ) -> None:
        self.need, self.network, self.classifier, self.points = need, network, classifier, points
        self.rows = torch.arange(len(points), device=points.device)
        self.bounds = classifier.bounds if need.bounded else NONE
        self.bounded = self.bounds.finite
        self.diameter = _diameter(classifier.bounds, points, need.norm)
        self.predicted = logits.argmax(dim=1)
        exact = network(points)
        self.margins = None if decided is None else classifier.decision.linear_margins(decided, exact.shape[1])
        if self.margins is None:
            size = exact.abs() + exact.abs().gather(1, self.predicted[:, None])
            error = (logits - exact).abs()
        else:
            weights, constants = self.margins
            size = torch.einsum("bkl,bl->bk", weights.abs(), exact.abs())
            error = (-logits[:, 1:] - torch.einsum("bkl,bl->bk", weights, exact) - constants).abs()
        self.allowance = ROUNDING * size + SLACK * error.max(dim=1, keepdim=True).values
        self.passes = torch.zeros_like(self.predicted)

    def __call__(self, rows: Tensor, radii: Tensor) -> Tensor:
        """The score of `rows`, `[K']`, at `radii`, `[K']`: positive where nothing else is predicted in the ball."""
        region = Region.around(self.points[rows], radii, self.need.norm, self.bounds)
        found = self._bounds(region, rows)
        self.passes[rows] += found.functions + 1
        self.classifier.forward_passes += len(rows)
        self.classifier.backward_passes += int(found.functions.sum())
        score = (found.lower - self.allowance[rows]).min(dim=1).values
        return score.nan_to_num(nan=-torch.inf)

    def _bounds(self, region: Region, rows: Tensor) -> MarginBounds:
        """Lower bounds of the margins over a region around `rows`."""
        if self.margins is None:
            return margin_bounds(self.network, region, self.predicted[rows])
        return linear_bounds(self.network, region, *(part[rows] for part in self.margins))


def _diameter(bounds: Bounds, points: Tensor, norm: str) -> float | Tensor:
    """Largest distance of two inputs within the bounds; where these are not finite a scale of each point, `[K]`."""
    order = ORDER[norm]
    if bounds.pair is not None:
        width = bounds.pair[1] - bounds.pair[0]
        return width * points[0].numel() ** (1 / order)
    low, high = bounds.reach(points)
    return torch.linalg.vector_norm((high - low).expand_as(points).flatten(1), order, dim=1)


def largest(score: Score, rows: Tensor, diameter: float | Tensor, bounded: bool) -> Tensor:
    """For each row the largest radius found with a positive score, `[K]`; 0 where there is none.

    Scores decrease, as a rule; even where they do not, each radius that is returned had a positive score.

    Args:
        score: of some rows, `[K]`, at a radius each, `[K]`.
        rows: their numbers, `[K]`.
        diameter: the scale of the radii, one for all or for each row, `[K]`.
        bounded: whether a ball of this radius holds all inputs, so that nothing beyond it needs to be tried.
    """
    search = _Search.begin(score, rows)
    radii = torch.zeros_like(search.low) + FIRST * diameter
    for step in range(STEPS):
        wide = search.open(diameter if bounded else math.inf)
        if not len(wide):
            break
        search.try_radii(score, wide, radii[wide])
        radii = search.propose(FIRST_SHARE if not step else 1 + ACCURACY / 3)
        radii = radii.minimum(torch.zeros_like(radii) + diameter) if bounded else radii
    return search.low


@dataclass
class _Search:
    """Brackets of the radius at which the score changes its sign, each `[K]`.

    Attributes:
        start: score at radius 0.
        low: largest radius with a positive score so far.
        low_score: the score there, halved whenever this end stays twice in a row.
        high: smallest radius beyond it without; infinite until there is one.
        high_score: the score there, likewise.
        moved: whether the last trial moved `low`.
    """

    start: Tensor
    low: Tensor
    low_score: Tensor
    high: Tensor
    high_score: Tensor
    moved: Tensor

    @classmethod
    def begin(cls, score: Score, rows: Tensor) -> _Search:
        """At radius 0."""
        start = score(rows, rows.double() * 0)
        infinite = torch.full_like(start, torch.inf)
        return cls(start, torch.zeros_like(start), start.clone(), infinite, -infinite, torch.ones_like(start).bool())

    def open(self, most: float | Tensor) -> Tensor:
        """The rows whose bracket is not narrow enough."""
        wide = (self.high > self.low * (1 + ACCURACY)) & (self.low < most)
        return ((self.start > 0) & wide).nonzero()[:, 0]

    def try_radii(self, score: Score, rows: Tensor, radii: Tensor) -> None:
        """Narrow the brackets of `rows` by what is found at `radii`."""
        found = score(rows, radii)
        good, moved = found > 0, self.moved[rows]
        low_score, high_score = self.low_score[rows], self.high_score[rows]
        self.low[rows] = radii.where(good, self.low[rows])
        self.high[rows] = self.high[rows].where(good, radii)
        self.low_score[rows] = found.where(good, torch.where(moved, low_score, low_score / 2))
        self.high_score[rows] = torch.where(good, torch.where(moved, high_score / 2, high_score), found)
        self.moved[rows] = good

    def propose(self, stretch: float) -> Tensor:
        """The radii to try next.

        Without an upper end: where the secant from radius 0 crosses zero, times `stretch`. In a wide bracket: the
        geometric mean of its ends. Otherwise: where the secant through both ends crosses zero, a little on
        the side of the end that stayed.
        """
        ahead = self.low * self.start / (self.start - self.low_score).clamp_min(1e-9 * self.start)
        ahead = (ahead * stretch).clamp(1.1 * self.low, self.low * (4 if stretch > 1 else 1e4))
        gap = self.high - self.low
        share = (self.low_score / (self.low_score - self.high_score)).nan_to_num(0.5)
        inside = self.low + gap * share
        inside = torch.where(self.moved, (1 + ACCURACY / 3) * inside, (1 - ACCURACY / 3) * inside)
        inside = inside.maximum(self.low + 0.1 * gap).minimum(self.high - 0.1 * gap)
        middle = (self.low * self.high).sqrt()
        inside = torch.where((self.low > 0) & (self.high > 8 * self.low), middle, inside)
        return torch.where(self.high.isinf(), ahead, inside)
