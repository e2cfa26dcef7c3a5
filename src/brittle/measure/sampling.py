"""Noisy forward passes: votes for the predicted class, moments of the margins and of the probability's change."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.classifier import Classifier
from brittle.measure.base import Measurement, check_draws, without_draws
from brittle.measure.forward import Clean
from brittle.measure.groups import GROUPS, Chunk, group_counts, noisy_chunks
from brittle.noise import Noise
from brittle.orthant import without_rounding


@dataclass(frozen=True)
class MarginMoments:
    """Mean and covariance of the margins of the kept competitors under noise.

    Attributes:
        mean: `[B, A, K]`, float64; entry 0 of axis 1 is from all draws, the others without one group each.
        covariance: `[B, A, K, K]`, float64, likewise.
        left_out_mean: mean margins of the competitors that were not kept, `[B, C]`; infinite for the kept ones.
        left_out_variance: their variances, `[B, C]`.
    """

    mean: Tensor
    covariance: Tensor
    left_out_mean: Tensor
    left_out_variance: Tensor


@dataclass(frozen=True)
class ProbabilityMoments:
    """Moments of `dp = p_t(x + e) - p_t(x)` over antithetic pairs, `p_t` the probability of the predicted class.

    For each pair three averages over its two members: of `dp`, of `dp^2` and of `|dp|`.

    Attributes:
        mean: means over the pairs, `[B, 3]`, float64.
        covariance: their covariance between pairs, `[B, 3, 3]`; of the averages, not of their means.
        pairs: number of pairs.
    """

    mean: Tensor
    covariance: Tensor
    pairs: int


@dataclass(frozen=True)
class Sampled:
    """What `draws` noisy copies of each point showed.

    A copy votes for the predicted class `t` when its logit is larger than every other; a tie is no vote.

    Attributes:
        draws: number of noisy copies, in antithetic pairs.
        flips: pairs with none, one and two copies that did not vote for `t`, `[B, 3]`.
        nonfinite: copies with NaN or infinite logits, `[B]`.
        moments: of the margins; None below two pairs.
        change: moments of the probability's change; None below two pairs.
        tied: whether the prediction of the clean input was a tie, `[B]`.
        left_out: whether competitors were left out of the moments.
        passes: passes through the network per point, the clean one included.
    """

    draws: int
    flips: Tensor
    nonfinite: Tensor
    moments: MarginMoments | None
    change: ProbabilityMoments | None
    tied: Tensor
    left_out: bool
    passes: int


@dataclass(frozen=True)
class Sample(Measurement):
    """Noisy forward passes in antithetic pairs `(e, -e)`.

    Attributes:
        noise: the noise.
        draws: number of noisy copies, even.
        clip: clip the noisy copies to the classifier's bounds; the linear theory then no longer holds exactly.
    """

    noise: Noise
    draws: int
    clip: bool = False

    def __post_init__(self) -> None:
        check_draws(self.draws)

    @property
    def stream(self) -> Hashable:
        """All budgets of one noise share their passes."""
        return without_draws(self)

    @classmethod
    def measure(cls, needs: Sequence[Any], classifier: Classifier, clean: Clean) -> list[Sampled]:
        """Sums over the draws, read off at the budget of each need."""
        first, budgets = needs[0], [need.draws for need in needs]
        sums = _Sums.start(clean, clean.competitors())
        done: dict[int, Sampled] = {}
        for chunk in noisy_chunks(clean, first.noise, "sample", budgets):
            copies = chunk.inputs.clamp(*classifier.bounds) if first.clip else chunk.inputs
            with torch.no_grad():
                logits = classifier(copies)
            sums.add(chunk, chunk.unfold(logits.double()))
            units = chunk.first + chunk.units
            if 2 * units in budgets:
                done[2 * units] = sums.read_off(units, clean)
        return [done[budget] for budget in budgets]


@dataclass
class _Sums:
    """Running sums over pairs. Margins are taken relative to the clean ones, so that sums of squares stay small."""

    predicted: Tensor
    competitors: Tensor
    origin: Tensor
    flips: Tensor
    nonfinite: Tensor
    margins: Tensor
    squares: Tensor
    even: Tensor
    even_even: Tensor
    odd_odd: Tensor
    doubt: Tensor
    changes: Tensor
    change_products: Tensor

    @classmethod
    def start(cls, clean: Clean, competitors: Tensor) -> _Sums:
        points, classes = clean.logits.shape
        kept = competitors.shape[1]

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(points, *shape, dtype=torch.float64, device=clean.logits.device)

        origin = _margins(clean.logits.double(), clean.predicted).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        counts = torch.zeros(points, 3, dtype=torch.int64, device=clean.logits.device)
        return cls(
            clean.predicted,
            competitors,
            origin,
            counts,
            counts[:, 0].clone(),
            zeros(classes),
            zeros(classes),
            zeros(GROUPS, kept),
            zeros(GROUPS, kept, kept),
            zeros(GROUPS, kept, kept),
            doubt(clean.logits.double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0), clean.predicted),
            zeros(3),
            zeros(3, 3),
        )

    def add(self, chunk: Chunk, logits: Tensor) -> None:
        """Add the logits `[B, units, 2, C]` of a chunk."""
        margins = _margins(logits, self.predicted[:, None, None])
        others = margins.scatter(3, self.predicted[:, None, None, None].expand(*margins.shape[:3], 1), torch.inf)
        flipped = ~(others.amin(dim=3) > 0)
        self.flips += torch.nn.functional.one_hot(flipped.sum(2), 3).sum(1)
        self.nonfinite += (~logits.isfinite().all(dim=3)).sum((1, 2))
        change = self.doubt[:, None, None] - doubt(logits, self.predicted[:, None, None])
        averages = torch.stack((change, change.square(), change.abs()), dim=3).mean(dim=2)
        self.changes += averages.sum(dim=1)
        self.change_products += averages.mT @ averages
        shifted = margins - self.origin[:, None, None]
        self.margins += shifted.sum((1, 2))
        self.squares += shifted.square().sum((1, 2))
        kept = shifted.gather(3, self.competitors[:, None, None].expand(*shifted.shape[:3], -1))
        even, odd = kept.mean(2), (kept[:, :, 0] - kept[:, :, 1]) / 2
        self.even.index_add_(1, chunk.groups, even)
        for group in chunk.groups.unique().tolist():
            own = chunk.groups == group
            self.even_even[:, group] += even[:, own].mT @ even[:, own]
            self.odd_odd[:, group] += odd[:, own].mT @ odd[:, own]

    def read_off(self, units: int, clean: Clean) -> Sampled:
        """What the pairs so far showed."""
        classes, kept = self.origin.shape[1], self.competitors.shape[1]
        return Sampled(
            draws=2 * units,
            flips=self.flips.clone(),
            nonfinite=self.nonfinite.clone(),
            moments=self._moments(units) if units > 1 else None,
            change=self._change(units) if units > 1 else None,
            tied=clean.tied,
            left_out=kept < classes - 1,
            passes=clean.passes + 2 * units,
        )

    def _change(self, units: int) -> ProbabilityMoments:
        mean = self.changes / units
        spread = self.change_products - units * mean[:, :, None] * mean[:, None, :]
        return ProbabilityMoments(mean, spread / (units - 1), units)

    def _moments(self, units: int) -> MarginMoments:
        counts = group_counts(units).to(self.even)
        left_out = [0, *(group for group in range(GROUPS) if 0 < counts[group] < units and units - counts[group] > 1)]
        keep = torch.ones(len(left_out), GROUPS, dtype=torch.float64, device=self.even.device)
        for row, group in enumerate(left_out[1:], start=1):
            keep[row, group] = 0.0
        pairs = (keep @ counts)[:, None]
        even = torch.einsum("ag,bgk->bak", keep, self.even) / pairs
        even_even = torch.einsum("ag,bgkl->bakl", keep, self.even_even)
        odd_odd = torch.einsum("ag,bgkl->bakl", keep, self.odd_odd)
        spread = even_even - pairs[..., None] * even[..., :, None] * even[..., None, :]
        covariance = odd_odd / pairs[..., None] + spread / (pairs[..., None] - 1)
        mean = even + self.origin.gather(1, self.competitors)[:, None]
        left_mean, left_variance = self._left_out(2 * units)
        sizes = (even_even + odd_odd).diagonal(dim1=-2, dim2=-1) / pairs + self._origin_size()[:, None]
        covariance = without_rounding((covariance + covariance.mT) / 2, sizes)
        return MarginMoments(mean, covariance, left_mean, left_variance)

    def _origin_size(self) -> Tensor:
        """Squares of the clean margins of the competitors, times the precision: what rounding leaves of them."""
        return self.origin.gather(1, self.competitors).square() * torch.finfo(torch.float64).eps

    def _left_out(self, draws: int) -> tuple[Tensor, Tensor]:
        mean = self.margins / draws
        variance = (self.squares / draws - mean.square()).clamp_min(0.0)
        known = torch.cat((self.competitors, self.predicted[:, None]), dim=1)
        return (mean + self.origin).scatter(1, known, torch.inf), variance


def doubt(logits: Tensor, predicted: Tensor) -> Tensor:
    """`1 - p_t`, the softmax probability of all other classes, at full relative precision, `[...]`."""
    own = predicted[..., None].expand(*logits.shape[:-1], 1)
    others = logits.scatter(-1, own, -torch.inf).logsumexp(dim=-1)
    return torch.sigmoid(others - logits.gather(-1, own)[..., 0])


def _margins(logits: Tensor, predicted: Tensor) -> Tensor:
    """`z_t - z_j` for every class `j`, the predicted one included, `[..., C]`."""
    return logits.gather(-1, predicted[..., None].expand(*logits.shape[:-1], 1)) - logits
