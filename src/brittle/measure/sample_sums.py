"""What noisy copies show of a point: votes for the predicted class, moments of the margins, changed probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import (
    NoisyMargins,
    Votes,
    margins_of,
    nearest_margins,
    powers_of,
    spread_of,
)
from brittle.orthant import without_rounding

KEPT_DRAWS = 2000
"""Noisy copies of a point whose nearest margins are kept."""

KEPT_UNITS = 2**16
"""Units of noise whose doubts are kept: more draws narrow the interval of a change no further."""


@dataclass(frozen=True)
class ProbabilityChanges:
    """`dp = p_t(x + e) - p_t(x)` over units of noise, `p_t` the probability of the predicted class; float64.

    A unit is an antithetic pair or a single copy, and its average is over its members.

    Attributes:
        mean: means of `dp`, of `dp^2` and of `|dp|`, `[B, 3]`.
        between: variance of the average `dp` between units, `[B]`.
        doubt: `1 - p_t(x)`, `[B]`.
        doubts: `1 - p_t(x + e)` of the first units, all of them up to `KEPT_UNITS`, `[B, U, members]`.
    """

    mean: Tensor
    between: Tensor
    doubt: Tensor
    doubts: Tensor


@dataclass(frozen=True)
class Sampled:
    """What `draws` noisy copies of each point showed.

    Attributes:
        draws: number of noisy copies, in antithetic pairs or single.
        votes: how they voted.
        margins: mean and covariance of the margins of the kept competitors; None below two units.
        left_out: whether competitors were not kept.
        change: how the probability changed; None below two units.
        nearest: margin to the nearest competitor in each copy, `[B, draws]`; None above `KEPT_DRAWS` copies.
            These three are None, too, where the votes alone were wanted.
        tied: whether the prediction of the clean input was a tie, `[B]`.
        passes: passes through the network per point, the clean one included.
    """

    draws: int
    votes: Votes
    margins: NoisyMargins | None
    left_out: bool
    change: ProbabilityChanges | None
    nearest: Tensor | None
    tied: Tensor
    passes: int


@dataclass
class SampleSums:
    """Running sums over units of noise.

    Attributes:
        clean: the points.
        competitors: those that are kept, `[B, K]`.
        origin: the clean margins of all, `[B, C]`; margins are summed relative to them.
        doubt: `1 - p_t(x)`, `[B]`.
        votes: how the copies voted.
        powers: of the even and odd parts of the margins (`powers_of`), `[B, 8, K]`.
        even_even: products of the even parts, `[B, K, K]`; `odd_odd` those of the odd parts.
        changes: the average `dp`, `dp^2` and `|dp|` of a unit, `[B, 3]`; `change_products` their products, `[B, 3, 3]`.
        doubts: of `KEPT_UNITS` units at least.
        nearest: margins of `KEPT_DRAWS` copies at least.
        votes_only: nothing but the votes is summed.
    """

    clean: Clean
    competitors: Tensor
    origin: Tensor
    doubt: Tensor
    votes: Votes
    powers: Tensor
    even_even: Tensor
    odd_odd: Tensor
    changes: Tensor
    change_products: Tensor
    doubts: list[Tensor] = field(default_factory=list)
    nearest: list[Tensor] = field(default_factory=list)
    votes_only: bool = False

    @classmethod
    def start(cls, clean: Clean, members: int = 2, votes_only: bool = False) -> SampleSums:
        """No units of `members` copies yet."""
        competitors, logits = clean.competitors(), clean.logits.double()
        finite = logits.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        origin = margins_of(logits, clean.predicted).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        none = Votes.of(logits[:, None, None].expand(-1, -1, members, -1)[:, :0], clean.predicted)
        kept = competitors.shape[1]
        shapes = ((8, kept), (kept, kept), (kept, kept), (3,), (3, 3))
        powers, even, odd, changes, products = (logits.new_zeros(len(logits), *shape) for shape in shapes)
        doubts = doubt(finite, clean.predicted)
        sums = (powers, even, odd, changes, products)
        return cls(clean, competitors, origin, doubts, none, *sums, votes_only=votes_only)

    def add(self, logits: Tensor) -> None:
        """Add the logits `[B, units, members, C]` of some units."""
        predicted = self.clean.predicted[:, None, None]
        self.votes += Votes.of(logits, self.clean.predicted)
        if self.votes_only:
            return
        shifted = margins_of(logits, predicted) - self.origin[:, None, None]
        kept = shifted.gather(3, self.competitors[:, None, None].expand(*shifted.shape[:3], -1))
        even, odd = kept[:, :, 0], torch.zeros_like(kept[:, :, 0])
        if kept.shape[2] == 2:
            even, odd = kept.mean(2), (kept[:, :, 0] - kept[:, :, 1]) / 2
        self.even_even += even.mT @ even
        self.odd_odd += odd.mT @ odd
        self.powers += powers_of(even, odd)
        doubts = doubt(logits, predicted)
        if sum(kept.shape[1] for kept in self.doubts) < KEPT_UNITS:
            self.doubts.append(doubts)
        change = self.doubt[:, None, None] - doubts
        averages = torch.stack((change, change.square(), change.abs()), dim=3).mean(dim=2)
        self.changes += averages.sum(dim=1)
        self.change_products += averages.mT @ averages
        if sum(kept.shape[1] for kept in self.nearest) < KEPT_DRAWS:
            self.nearest.append(nearest_margins(logits, predicted).flatten(1))

    def read(self, units: int) -> Sampled:
        """What the units so far showed."""
        change, draws = None, self.votes.draws
        if units >= 2 and not self.votes_only:
            mean = self.changes / units
            between = (self.change_products - units * mean[:, :, None] * mean[:, None, :])[:, 0, 0] / (units - 1)
            change = ProbabilityChanges(mean, between, self.doubt, torch.cat(self.doubts, dim=1)[:, :KEPT_UNITS])
        return Sampled(
            draws=draws,
            votes=self.votes,
            margins=self._margins(units) if units >= 2 and not self.votes_only else None,
            left_out=self.competitors.shape[1] < self.origin.shape[1] - 1,
            change=change,
            nearest=torch.cat(self.nearest, dim=1) if draws <= KEPT_DRAWS and not self.votes_only else None,
            tied=self.clean.tied,
            passes=self.clean.passes + draws,
        )

    def _margins(self, units: int) -> NoisyMargins:
        even = self.powers[:, 0] / units
        spread = self.even_even - units * even[:, :, None] * even[:, None, :]
        covariance = self.odd_odd / units + spread / (units - 1)
        origin = self.origin.gather(1, self.competitors)
        left = origin.square() * torch.finfo(torch.float64).eps  # what rounding leaves of the clean margins
        sizes = (self.even_even + self.odd_odd).diagonal(dim1=1, dim2=2) / units + left
        covariance = without_rounding((covariance + covariance.mT) / 2, sizes)
        return NoisyMargins(units, spread_of(self.powers, units, origin), covariance)


def doubt(logits: Tensor, predicted: Tensor) -> Tensor:
    """`1 - p_t`, the softmax probability of all other classes, at full relative precision, `[...]`."""
    own = predicted[..., None].expand(*logits.shape[:-1], 1)
    return torch.sigmoid(logits.scatter(-1, own, -torch.inf).logsumexp(dim=-1) - logits.gather(-1, own)[..., 0])
