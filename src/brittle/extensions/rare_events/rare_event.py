"""Flip probabilities too small to count, by two methods to sample rare flips that must agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from scipy import special
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Evidence, Status
from brittle.extensions.rare_events.rare_flips import ENOUGH_FLIPS, ByLevels, RareFlips, RareSampled
from brittle.intervals import clopper_pearson
from brittle.measure import Measurement
from brittle.scores.base import NoiseScore, finish, initial_status, mark

COPIES = 200
"""Noisy copies in a level by default."""

UNSEEN = 0.03
"""Share by which each level raises the standard error of a product of levels above the spread between its chains."""


@dataclass(frozen=True)
class RareEvent(NoiseScore):
    """`1 - p_robust = P(argmax z(x + e) != t)` under normal noise, down to 1e-12.

    If at least 20 of `copies` plain noisy copies flip, the value is their share, with its exact interval, and the
    status is `ok`. Otherwise two methods that fail differently, both with large errors, sample the rare flips. *Subset
    simulation* climbs from the plain copies to the flips by levels of the margin, each about a fifth as probable as the
    level before. *Stretched noise* flips often; it is stretched less and less, and keeps copies by their flips alone,
    so that it needs no margin as a guide.

    `coarse`: both agree within their errors; the value is their mean, the interval spans both. Otherwise the value is
    the larger, and the interval goes from 0 to the larger upper end, that by counting included: `unforeseen` if
    stretched or shrunk noise shows flips beyond the interval, `disagree` otherwise, `no_flip` without any flip. No
    number leaves the interval by counting.

    Validity: normal noise. The interval of a number covers the sampling error. It does not cover flips to which no
    margin leads and that few rays from the point meet, or meet only along a small part of their length: tiny balls,
    thin slabs, narrow corners. Only the interval by counting holds for every network.

    Source: S.-K. Au, J. Beck, Prob. Eng. Mech. 16 (2001), for subset simulation; K. Cheng et al., Rare event estimation
    with sequential directional importance sampling, Struct. Saf. 100 (2023), for stretched noise.

    Attributes:
        noise: the noise family, instead of `sigma`; normal.
        copies: plain noisy copies, and copies in each level of both methods, at least 20.

    Raises:
        ParameterError: `sigma` is not a positive finite number, the noise is not normal or has no draws, or a number is
            out of range.
    """

    copies: int = COPIES

    name: ClassVar[str] = "rare_event"
    title = "Rare events"
    cost = "1 + copies where they flip, about 7,000 per sigma at 1e-6"
    reference = "Au, Beck (2001); Cheng et al. (2023)"
    serves = "all"
    explanation = (
        "Flip probabilities that no count reaches, by subset simulation and stretched noise: a number where both "
        "agree, elsewhere an upper bound. Many passes."
    )
    preference = 9
    model = "sampling by levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.noise.normal:
            raise ParameterError(
                f"{self.name} needs normal noise with a known covariance, unlike the family {self.noise.name}; use "
                f"brittle.noise.Gaussian, or monte_carlo for this family"
            )
        RareFlips(self.noise, self.copies)

    @property
    def needs(self) -> tuple[Measurement, ...]:
        return (RareFlips(self.noise, self.copies),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        sampled: RareSampled = measured[self.needs[0]]
        subset, stretched = (_Estimate.of(product, confidence) for product in (sampled.subset, sampled.stretched))
        counted = _count_flips(sampled, confidence)
        # The count may cut off either end of the interval of the mean, so each has half the error.
        count_low, count_high = _count_flips(sampled, (1.0 + confidence) / 2.0)
        highest = torch.maximum(subset.high, stretched.high)
        mean_low = torch.maximum(torch.minimum(subset.low, stretched.low), count_low)
        mean_high, mean = torch.minimum(highest, count_high), _mean(subset, stretched)
        shrunk = clopper_pearson(sampled.shrunk.cpu().numpy(), sampled.shrunk_drawn, confidence)[0]
        unforeseen = torch.from_numpy(shrunk).to(highest) > highest
        difference = (subset.log - stretched.log).nan_to_num(nan=torch.inf).abs()
        close = difference <= _quantile(confidence) * (subset.variance + stretched.variance).sqrt()
        agree = close & ~((mean < mean_low) | (mean > mean_high)) & ~unforeseen

        share, enough = sampled.flips.double() / sampled.drawn, sampled.flips >= ENOUGH_FLIPS
        raw = (product.log.exp().nan_to_num(nan=0.0) for product in (sampled.subset, sampled.stretched))
        largest = torch.maximum(torch.maximum(*raw), share).clamp_max(1.0)
        has_flips = largest > 0
        upper = torch.maximum(counted[1], torch.where(has_flips, highest, 0.0)).clamp_max(1.0)
        value = torch.where(enough, share, torch.where(agree, mean, largest))
        low = torch.where(enough, counted[0], torch.where(agree, mean_low, 0.0))
        high = torch.where(enough, counted[1], torch.where(agree, mean_high, upper))

        status = initial_status(sampled.tied, sampled.nonfinite > 0)
        status = mark(status, sampled.ties > 0, Status.NOISY_TIES)
        for condition, member in (
            (~has_flips, Status.NO_FLIP),
            (agree, Status.COARSE),
            (unforeseen | (stretched.low > subset.high), Status.UNFORESEEN),
            (torch.ones_like(enough), Status.DISAGREE),
        ):
            status = mark(status, ~enough & condition, member)
        evidence = torch.where(enough | ~has_flips, int(Evidence.COUNTED), int(Evidence.SAMPLED))
        detail = _detail(sampled, subset, stretched, status)
        return finish(value, low, high, status, sampled.passes, detail, evidence, counted)


@dataclass(frozen=True)
class _Estimate:
    """A flip probability on the scale of the logarithm, `[B]` each.

    The chains of a level depend on those of the level before, which adds `UNSEEN` per level to their standard error.
    The logarithm of an unbiased estimate is low by half its variance, which is added.
    """

    log: Tensor
    variance: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, product: ByLevels, confidence: float) -> _Estimate:
        """Return the estimate of a product of levels with its interval; 0 where the levels did not reach the flips."""
        variance = (1.0 + UNSEEN * product.levels).square() * product.variance.nan_to_num(nan=0.0)
        log = product.log.nan_to_num(nan=-torch.inf) + variance / 2.0
        width = _quantile(confidence) * variance.sqrt()
        return cls(log, variance, torch.exp(log - width), torch.exp(log + width))


def _quantile(confidence: float) -> float:
    return float(special.ndtri((1.0 + confidence) / 2.0))


def _mean(subset: _Estimate, stretched: _Estimate) -> Tensor:
    """Return the mean of both on the scale of the logarithm, weighted by precision, `[B]`."""
    weights = [1.0 / estimate.variance.clamp_min(1e-6) for estimate in (subset, stretched)]
    return ((weights[0] * subset.log + weights[1] * stretched.log) / (weights[0] + weights[1])).exp().clamp_max(1.0)


def _count_flips(sampled: RareSampled, confidence: float) -> tuple[Tensor, Tensor]:
    """Return the exact interval from the plain copies; a tie is a flip at the upper end only."""
    flips, ties = sampled.flips.cpu().numpy(), sampled.ties.cpu().numpy()
    low = clopper_pearson(flips - ties, sampled.drawn, confidence)[0]
    high = clopper_pearson(flips, sampled.drawn, confidence)[1]
    return torch.from_numpy(low).to(sampled.subset.log), torch.from_numpy(high).to(sampled.subset.log)


def _detail(sampled: RareSampled, subset: _Estimate, stretched: _Estimate, status: Tensor) -> tuple[str | None, ...]:
    """Describe the interval of each method where the number is sampled or a bound, and broken copies, `[B]`."""

    def describe(code: int, point: int) -> str | None:
        if code == Status.NONFINITE_LOGITS:
            return f"{int(sampled.nonfinite[point])} noisy copies gave NaN or infinite logits"
        if code not in (Status.DISAGREE, Status.UNFORESEEN, Status.COARSE):
            return None
        text = ", ".join(
            f"{name} says [{float(estimate.low[point]):.2g}, {float(estimate.high[point]):.2g}]"
            for name, estimate in (("subset simulation", subset), ("stretched noise", stretched))
        )
        shrunk = int(sampled.shrunk[point])
        return f"{text}; {shrunk} of {sampled.shrunk_drawn} copies with shrunk noise flip" if shrunk else text

    return tuple(describe(code, point) for point, code in enumerate(status.tolist()))
