"""Flip probabilities too small to count, by ways to sample rare flips that must agree."""

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
"""By how much a level adds to the standard error of a product of levels beyond what its chains show, as a share."""


@dataclass(frozen=True)
class RareEvent(NoiseScore):
    """`1 - p_robust = P(argmax z(x + e) != t)` under normal noise, down to 1e-12.

    Where at least 20 of `copies` plain noisy copies flip, their share decides, with its exact interval, and the status
    is `ok`. Elsewhere the rare flips are sampled in two ways that fail differently, both with large errors. *Subset
    simulation* climbs from the plain copies to the flips by levels of the margin, each about a fifth as probable as the
    one before. *Stretched noise* flips often; it is stretched less and less, and only whether copies flip decides what
    stays, so it needs no margin to lead it.

    `coarse`: both agree within their errors; the value is their mean, the interval reaches over both. Elsewhere the
    value is the larger, and the interval goes from 0 to the larger upper end, that by counting included: `unforeseen`
    where stretched or shrunk noise shows flips that were not foreseen, `disagree` otherwise, `no_flip` where there was
    none. No number leaves the interval by counting.

    Validity: normal noise. The interval of a number covers the sampling error. It does not cover flips to which no
    margin leads and that few rays from the point meet, or only within a small part of their length: tiny balls, thin
    slabs, narrow corners. Only the interval by counting holds for every network.

    Source: S.-K. Au, J. Beck, Prob. Eng. Mech. 16 (2001), for subset simulation; K. Cheng et al., Rare event estimation
    with sequential directional importance sampling, Struct. Saf. 100 (2023), for stretched noise.

    Attributes:
        noise: the noise family, instead of `sigma`; normal.
        copies: plain noisy copies, and copies in each level of both ways, at least 20.

    Raises:
        ParameterError: `sigma` is not a positive finite number, the noise is not normal or has no draws, or a number
            is out of range.
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
                f"{self.name} needs normal noise that says its covariance, and the family "
                f"{self.noise.name} is not; use brittle.noise.Gaussian, or monte_carlo for this family",
            )
        RareFlips(self.noise, self.copies)

    @property
    def needs(self) -> tuple[Measurement, ...]:
        return (RareFlips(self.noise, self.copies),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        sampled: RareSampled = measured[self.needs[0]]
        subset, stretched = (_Way.of(product, confidence) for product in (sampled.subset, sampled.stretched))
        counted = _counted(sampled, confidence)
        # The number of both ways: the count may cut off either end of its interval, so each has half the error.
        least, most = _counted(sampled, (1.0 + confidence) / 2.0)
        highest = torch.maximum(subset.high, stretched.high)
        own_low = torch.maximum(torch.minimum(subset.low, stretched.low), least)
        own_high, own = torch.minimum(highest, most), _mean(subset, stretched)
        shrunk = clopper_pearson(sampled.shrunk.cpu().numpy(), sampled.shrunk_drawn, confidence)[0]
        unforeseen = torch.from_numpy(shrunk).to(highest) > highest
        difference = (subset.log - stretched.log).nan_to_num(nan=torch.inf).abs()
        close = difference <= _quantile(confidence) * (subset.variance + stretched.variance).sqrt()
        agree = close & ~((own < own_low) | (own > own_high)) & ~unforeseen

        share, enough = sampled.flips.double() / sampled.drawn, sampled.flips >= ENOUGH_FLIPS
        raw = (product.log.exp().nan_to_num(nan=0.0) for product in (sampled.subset, sampled.stretched))
        largest = torch.maximum(torch.maximum(*raw), share).clamp_max(1.0)
        some = largest > 0
        upper = torch.maximum(counted[1], torch.where(some, highest, 0.0)).clamp_max(1.0)
        value = torch.where(enough, share, torch.where(agree, own, largest))
        low = torch.where(enough, counted[0], torch.where(agree, own_low, 0.0))
        high = torch.where(enough, counted[1], torch.where(agree, own_high, upper))

        status = initial_status(sampled.tied, sampled.nonfinite > 0)
        status = mark(status, sampled.ties > 0, Status.NOISY_TIES)
        for where, member in (
            (~some, Status.NO_FLIP),
            (agree, Status.COARSE),
            (unforeseen | (stretched.low > subset.high), Status.UNFORESEEN),
            (torch.ones_like(enough), Status.DISAGREE),
        ):
            status = mark(status, ~enough & where, member)
        evidence = torch.where(enough | ~some, int(Evidence.COUNTED), int(Evidence.SAMPLED))
        detail = _detail(sampled, subset, stretched, status)
        return finish(value, low, high, status, sampled.passes, detail, evidence, counted)


@dataclass(frozen=True)
class _Way:
    """A way to sample rare flips, `[B]` each.

    The chains of a level depend on those of the level before, which adds `UNSEEN` a level to the error that they show.
    The logarithm of an estimate that is right in the mean is low by half its variance, which is added.
    """

    log: Tensor
    variance: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, product: ByLevels, confidence: float) -> _Way:
        """Its interval on the scale of the logarithm; 0 where the product of levels came to nothing."""
        variance = (1.0 + UNSEEN * product.levels).square() * product.variance.nan_to_num(nan=0.0)
        log = product.log.nan_to_num(nan=-torch.inf) + variance / 2.0
        width = _quantile(confidence) * variance.sqrt()
        return cls(log, variance, torch.exp(log - width), torch.exp(log + width))


def _quantile(confidence: float) -> float:
    return float(special.ndtri((1.0 + confidence) / 2.0))


def _mean(one: _Way, other: _Way) -> Tensor:
    """The mean of both on the scale of the logarithm, by their precisions, `[B]`."""
    weights = [1.0 / each.variance.clamp_min(1e-6) for each in (one, other)]
    return ((weights[0] * one.log + weights[1] * other.log) / (weights[0] + weights[1])).exp().clamp_max(1.0)


def _counted(sampled: RareSampled, confidence: float) -> tuple[Tensor, Tensor]:
    """The exact interval by the plain copies; a tie is a flip at the upper end, and none at the lower one."""
    flips, ties = sampled.flips.cpu().numpy(), sampled.ties.cpu().numpy()
    low = clopper_pearson(flips - ties, sampled.drawn, confidence)[0]
    high = clopper_pearson(flips, sampled.drawn, confidence)[1]
    return torch.from_numpy(low).to(sampled.subset.log), torch.from_numpy(high).to(sampled.subset.log)


def _detail(sampled: RareSampled, subset: _Way, stretched: _Way, status: Tensor) -> tuple[str | None, ...]:
    """The interval of each way where the number is sampled or a bound, and what broke, `[B]`."""

    def describe(code: int, point: int) -> str | None:
        if code == Status.NONFINITE_LOGITS:
            return f"{int(sampled.nonfinite[point])} noisy copies gave NaN or infinite logits"
        if code not in (Status.DISAGREE, Status.UNFORESEEN, Status.COARSE):
            return None
        text = ", ".join(
            f"{name} says [{float(way.low[point]):.2g}, {float(way.high[point]):.2g}]"
            for name, way in (("subset simulation", subset), ("stretched noise", stretched))
        )
        shrunk = int(sampled.shrunk[point])
        return f"{text}; {shrunk} of {sampled.shrunk_drawn} copies with shrunk noise flip" if shrunk else text

    return tuple(describe(code, point) for point, code in enumerate(status.tolist()))
