"""Linearised margins at noise that comes near to flipping the prediction, or flips it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brittle.measure.rare.asking import Ask, Search, Seen
from brittle.measure.rare.mixture import Candidates, Covariance, Parts

STEPS = 4
"""Steps of the search for the nearest flip of each competitor, the first from the point itself."""

COMPETITORS = 5
"""Competitors, nearest by the first step, that are followed further."""

ALIKE = 0.3
"""Cosine from which on two gradients lead to the same place."""


@dataclass(frozen=True)
class Tangents:
    """Linear functions `offset + slope e` of the noise `e`, the tangents of margins somewhere.

    Attributes:
        offsets: `[K]`, float64.
        slopes: `[K, n]`, float64.
        lengths: of the slopes in the metric of the noise, `[K]`.
        own: number of the noise at which it was taken, among those that a mixture is fitted to; -1 where of none.
        steady: whether a mixture keeps some draws for it, however few flips are seen there, `[K]`.
    """

    offsets: Tensor
    slopes: Tensor
    lengths: Tensor
    own: Tensor
    steady: Tensor

    @classmethod
    def at(cls, noise: Tensor, seen: Seen, covariance: Covariance) -> Tangents:
        """Those of the margins that were seen at `noise`, but for broken ones."""
        slopes = seen.gradients
        assert slopes is not None
        lengths = _lengths(slopes, covariance)
        offsets = seen.margins - (slopes * noise.double()).sum(dim=1)
        rows = (offsets.isfinite() & lengths.isfinite() & (lengths > 0)).nonzero().flatten()
        return cls(offsets[rows], slopes[rows], lengths[rows], rows, torch.zeros_like(rows, dtype=torch.bool))

    @classmethod
    def together(cls, parts: Sequence[Tangents]) -> Tangents:
        """All of them."""
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    def only(self, rows: Tensor) -> Tangents:
        """Some of them."""
        return Tangents(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def without_own(self) -> Tangents:
        """The same, of noise to which nothing is fitted."""
        return replace(self, own=torch.full_like(self.own, -1))

    def means(self, covariance: Covariance) -> Tangents:
        """The mean of each group that leads alike, the largest group first."""
        unit = self.slopes / self.lengths[:, None]
        alike = (unit @ covariance(unit).mT) >= ALIKE
        left = torch.ones(len(unit), dtype=torch.bool, device=unit.device)
        slopes, offsets = [], []
        while bool(left.any()):
            first = int((alike & left).sum(dim=1).masked_fill(~left, -1).argmax())
            group = alike[first] & left
            group[first] = True
            left &= ~group
            slopes.append(self.slopes[group].mean(dim=0))
            offsets.append(self.offsets[group].mean())
        if not slopes:
            return self
        mean = torch.stack(slopes)
        lengths = _lengths(mean, covariance)
        sound = (lengths > 0).nonzero().flatten()
        own, steady = self.own.new_full((len(mean),), -1), self.steady.new_ones(len(mean))
        return Tangents(torch.stack(offsets), mean, lengths, own, steady).only(sound)

    def candidates(self, covariance: Covariance) -> Candidates | None:
        """For each that is positive at the point, a wide part and a narrow one about where it falls to 0; or None."""
        distances = self.offsets / self.lengths
        rows = (distances > 0).nonzero().flatten()
        if not len(rows):
            return None
        near = distances[rows].clamp_min(1.0)
        centres = torch.cat((distances[rows], distances[rows] + 1.0 / near))
        widths = torch.cat((torch.ones_like(near), 1.5 / near.clamp_min(1.5)))
        parts = Parts.along(self.slopes[rows].repeat(2, 1), covariance, centres, widths)
        return Candidates(parts, self.own[rows].repeat(2), self.steady[rows].repeat(2))


def _lengths(slopes: Tensor, covariance: Covariance) -> Tensor:
    return (slopes * covariance(slopes)).sum(dim=1).clamp_min(0.0).sqrt()


def nearest_flips(covariance: Covariance, scales: Tensor, competitors: Tensor, size: int) -> Search[Tangents]:
    """The tangents at the nearest flip of each competitor, found by steps on its linearised margin.

    `e <- S g (g e - h) / (g S g)`, `h` and `g` the margin and its gradient at `x + e`: the flip nearest to the point in
    the metric of the noise, where the steps converge.

    Source: R. Rackwitz, B. Fiessler, Structural reliability under combined random load sequences, Comput. Struct. 9
    (1978).
    """
    at = torch.zeros(len(competitors), size, dtype=torch.float64, device=competitors.device)
    found = []
    for step in range(STEPS):
        seen = yield Ask(at, True, scales, competitors)
        tangents = Tangents.at(at, seen, covariance)
        if step == 0:
            distances = tangents.offsets / tangents.lengths
            tangents = tangents.only(distances.argsort(stable=True)[:COMPETITORS])
        competitors = competitors[tangents.own]
        found.append(replace(tangents.without_own(), steady=torch.ones_like(tangents.steady)))
        if not len(competitors):
            break
        away = tangents.offsets / tangents.lengths.square()
        at = -covariance(tangents.slopes) * away[:, None]
    return Tangents.together((found[0], found[-1]))
