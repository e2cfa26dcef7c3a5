"""The search for the largest radius within which margins are proved positive."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

FIRST = 1e-4
"""The first radius tried, as a share of the scale: few neurons are unstable there, and it shows where to look."""

FIRST_SHARE = 0.25
"""The second, as a share of where the proof of the first would end."""

FAR = 1e6
"""Where inputs have no bounds, how many times the scale is tried at most."""


@dataclass(frozen=True)
class Proved:
    """What the proofs for some balls gave, each `[K, C]`.

    Attributes:
        score: lower bound of each margin in the ball.
        reach: the distance within which the linear function behind it is positive; a proof only inside the ball.
    """

    score: Tensor
    reach: Tensor


Trial = Callable[[Tensor, Tensor, Tensor], Proved]
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

        Args:
            trial: the proofs.
            scale: of the radii, `[K]`; where `bounded`, a ball of this radius holds all inputs.
            bounded: whether nothing beyond `scale` needs to be tried.
            accuracy: relative distance of the ends of the bracket, where the search ends.
            steps: most radii that are tried.
            first: the radii to begin with, `[K]`, where they are positive.
            among: the points that are tried, `[K]`; all by default.
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

    def _narrow(self, rows: Tensor, radii: Tensor, wanted: Tensor, found: Proved) -> None:
        """Note what was found at `radii`."""
        row, kind = wanted.nonzero(as_tuple=True)
        score, reach = found.score[row, kind], found.reach[row, kind]
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
