"""What noisy copies show of a point: votes for the predicted class, moments of the margins, changed probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure.forward import Clean
from brittle.measure.noisy_margins import MarginSums, NoisyMargins, Votes, nearest_margins

KEPT_DRAWS = 2000
"""Noisy copies of a point whose nearest margins are kept."""

KEPT_UNITS = 2**16
"""Units of noise, more or less, whose doubts are kept: more draws narrow the interval of a change no further."""


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
    """Running sums over pairs or single copies, their doubts, and nearest margins of `KEPT_DRAWS` copies at least."""

    clean: Clean
    margins: MarginSums
    doubt: Tensor
    changes: Tensor
    change_products: Tensor
    doubts: list[Tensor]
    nearest: list[Tensor]

    @classmethod
    def start(cls, clean: Clean, members: int = 2) -> SampleSums:
        """No units of `members` copies yet."""
        logits = clean.logits.double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        products = torch.zeros(len(logits), 3, 3, dtype=torch.float64, device=logits.device)
        margins = MarginSums.start(clean, clean.competitors(), members)
        changes = (doubt(logits, clean.predicted), products[:, 0].clone(), products)
        return cls(clean, margins, *changes, doubts=[], nearest=[])

    def add(self, logits: Tensor) -> None:
        """Add the logits `[B, units, members, C]` of some units."""
        predicted = self.margins.predicted[:, None, None]
        self.margins.add(logits)
        doubts = doubt(logits, predicted)
        if sum(kept.shape[1] for kept in self.doubts) < KEPT_UNITS:
            self.doubts.append(doubts)
        change = self.doubt[:, None, None] - doubts
        averages = torch.stack((change, change.square(), change.abs()), dim=3).mean(dim=2)
        self.changes += averages.sum(dim=1)
        self.change_products += averages.mT @ averages
        if sum(kept.shape[1] for kept in self.nearest) < KEPT_DRAWS:
            self.nearest.append(nearest_margins(logits, self.margins.predicted[:, None, None]).flatten(1))

    def read(self, units: int) -> Sampled:
        """What the units so far showed."""
        margins, votes, change = self.margins.read(units), self.margins.votes.read(units), None
        if units >= 2:
            mean = self.changes / units
            between = (self.change_products - units * mean[:, :, None] * mean[:, None, :])[:, 0, 0] / (units - 1)
            change = ProbabilityChanges(mean, between, self.doubt, torch.cat(self.doubts, dim=1))
        return Sampled(
            draws=votes.draws,
            votes=votes,
            margins=margins,
            left_out=self.margins.competitors.shape[1] < self.margins.origin.shape[1] - 1,
            change=change,
            nearest=torch.cat(self.nearest, dim=1) if votes.draws <= KEPT_DRAWS else None,
            tied=self.clean.tied,
            passes=self.clean.passes + votes.draws,
        )


def doubt(logits: Tensor, predicted: Tensor) -> Tensor:
    """`1 - p_t`, the softmax probability of all other classes, at full relative precision, `[...]`."""
    own = predicted[..., None].expand(*logits.shape[:-1], 1)
    return torch.sigmoid(logits.scatter(-1, own, -torch.inf).logsumexp(dim=-1) - logits.gather(-1, own)[..., 0])
