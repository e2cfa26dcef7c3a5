"""What noisy copies show of a point: votes for the predicted class, moments of the margins and of the probability."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import MarginSums, NoisyMargins, Spread, Votes, nearest_margins

KEPT_DRAWS = 2000
"""Noisy copies of a point whose nearest margins are kept."""


@dataclass(frozen=True)
class ProbabilityMoments:
    """Moments of `dp = p_t(x + e) - p_t(x)` over units of noise, `p_t` the probability of the predicted class.

    For each unit, an antithetic pair or a single copy, three averages over its members: of `dp`, of `dp^2`, of `|dp|`.

    Attributes:
        mean: means over the units, `[B, 3]`, float64.
        covariance: their covariance between units, `[B, 3, 3]`; of the averages, not of their means.
        units: number of units.
        draws: number of noisy copies.
        doubt: `1 - p_t(x)`, `[B]`.
        soft: mean and variance of the log-odds of `p_t`, the *soft margin* `z_t - log sum_{j != t} exp z_j`, `[B]`
            each.
        steepest: standard deviation of the margin with the smallest mean in its standard deviations, `[B]`.
    """

    mean: Tensor
    covariance: Tensor
    units: int
    draws: int
    doubt: Tensor
    soft: Spread
    steepest: Tensor


@dataclass(frozen=True)
class Sampled:
    """What `draws` noisy copies of each point showed.

    Attributes:
        draws: number of noisy copies, in antithetic pairs or single.
        votes: how they voted.
        margins: mean and covariance of the margins of the kept competitors; None below two units.
        left_out: whether competitors were not kept.
        change: moments of the probability's change; None below two units.
        nearest: margin to the nearest competitor in each copy, `[B, draws]`; None above `KEPT_DRAWS` copies.
        tied: whether the prediction of the clean input was a tie, `[B]`.
        passes: passes through the network per point, the clean one included.
    """

    draws: int
    votes: Votes
    margins: NoisyMargins | None
    left_out: bool
    change: ProbabilityMoments | None
    nearest: Tensor | None
    tied: Tensor
    passes: int


@dataclass
class SampleSums:
    """Running sums over pairs or single copies, and the nearest margins of the first `KEPT_DRAWS` copies at least."""

    clean: Clean
    margins: MarginSums
    doubt: Tensor
    soft: Tensor
    changes: Tensor
    change_products: Tensor
    nearest: list[Tensor]

    @classmethod
    def start(cls, clean: Clean, members: int = 2) -> SampleSums:
        """No units of `members` copies yet."""
        points = len(clean.logits)

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(points, *shape, dtype=torch.float64, device=clean.logits.device)

        logits = clean.logits.double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        margins = MarginSums.start(clean, clean.competitors(), members, more=1)
        soft = soft_margin(logits, clean.predicted)
        changes = (torch.sigmoid(-soft), soft, zeros(3), zeros(3, 3))
        return cls(clean, margins, *changes, nearest=[])

    def add(self, logits: Tensor) -> None:
        """Add the logits `[B, units, members, C]` of some units."""
        predicted = self.margins.predicted[:, None, None]
        soft = soft_margin(logits, predicted)
        self.margins.add(logits, (soft - self.soft[:, None, None])[..., None])
        change = self.doubt[:, None, None] - torch.sigmoid(-soft)
        averages = torch.stack((change, change.square(), change.abs()), dim=3).mean(dim=2)
        self.changes += averages.sum(dim=1)
        self.change_products += averages.mT @ averages
        if sum(kept.shape[1] for kept in self.nearest) < KEPT_DRAWS:
            self.nearest.append(nearest_margins(logits, self.margins.predicted[:, None, None]).flatten(1))

    def read(self, units: int) -> Sampled:
        """What the units so far showed."""
        margins, votes = self.margins.read(units), self.margins.votes.read(units)
        return Sampled(
            draws=votes.draws,
            votes=votes,
            margins=margins,
            left_out=self.margins.competitors.shape[1] < self.margins.origin.shape[1] - 1,
            change=None if margins is None else self._change(units, margins),
            nearest=torch.cat(self.nearest, dim=1) if votes.draws <= KEPT_DRAWS else None,
            tied=self.clean.tied,
            passes=self.clean.passes + votes.draws,
        )

    def _change(self, units: int, margins: NoisyMargins) -> ProbabilityMoments:
        mean = self.changes / units
        spread = self.change_products - units * mean[:, :, None] * mean[:, None, :]
        soft = self.margins.spread(units, self.soft[:, None]).column(-1)
        deviation = margins.spread.variance.sqrt()
        nearest = (margins.spread.mean / deviation.clamp_min(1e-300)).argmin(dim=1, keepdim=True)
        steepest = deviation.gather(1, nearest)[:, 0]
        draws = units * self.margins.votes.flips.shape[1] - units
        return ProbabilityMoments(mean, spread / (units - 1), units, draws, self.doubt, soft, steepest)


def soft_margin(logits: Tensor, predicted: Tensor) -> Tensor:
    """Log-odds of the predicted class's probability, `z_t - log sum_{j != t} exp z_j`, `[...]`.

    `sigmoid(-soft_margin)` is `1 - p_t` at full relative precision.
    """
    own = predicted[..., None].expand(*logits.shape[:-1], 1)
    return logits.gather(-1, own)[..., 0] - logits.scatter(-1, own, -torch.inf).logsumexp(dim=-1)


def doubt(logits: Tensor, predicted: Tensor) -> Tensor:
    """`1 - p_t`, the softmax probability of all other classes, at full relative precision, `[...]`."""
    return torch.sigmoid(-soft_margin(logits, predicted))
