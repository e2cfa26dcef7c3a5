"""What the ways to sample rare flips say together: whether they agree, and what may be said then."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy import special
from torch import Tensor

from brittle.intervals import clopper_pearson
from brittle.measure import RareSampled
from brittle.measure.rare.rare_flips import ByLevels
from brittle.scores.evidence import Interval

FEWEST_EFFECTIVE = 10.0
"""Effective draws from which on importance sampling says anything."""

STRETCH = 1.25
"""By how much the interval of importance sampling is wider than its standard error says: weights are skewed, and with
the plain quantile its lower end was too high for 3 of 100 numbers of a bent margin."""

UNSEEN = 0.03
"""By how much a level adds to the standard error of a product of levels beyond what its chains show, as a share."""

MOST_SURPRISES = 0.1
"""Share of flips that importance sampling may not have expected."""


@dataclass(frozen=True)
class RareNumber:
    """A flip probability with its interval, `[B]`."""

    value: Tensor
    interval: Interval

    def where(self, chosen: Tensor, other: RareNumber) -> RareNumber:
        """This one where `chosen` holds, else the other."""
        one, two = self.interval, other.interval
        ends = (torch.where(chosen, a, b) for a, b in ((one.low, two.low), (one.high, two.high)))
        return RareNumber(torch.where(chosen, self.value, other.value), Interval(*ends))

    @property
    def inside(self) -> Tensor:
        """Whether the value lies in its interval."""
        return ~self.interval.excludes(self.value)


@dataclass(frozen=True)
class Ways:
    """The ways to sample rare flips, `[B]` each.

    Attributes:
        weights: the interval of importance sampling.
        subset: that of subset simulation.
        stretched: that of stretched noise.
        precise: the number of importance sampling, whose interval reaches up to the upper ends of all.
        precise_holds: whether it may be said: the others agree with it, and stretched and shrunk noise shows no flips
            that it did not foresee.
        coarse: the same where all flips at noise that is not stretched were foreseen; elsewhere the number of subset
            simulation and stretched noise.
        coarse_holds: whether it may be said: these two agree.
        unforeseen: whether stretched or shrunk noise shows more flips than the others foresaw, or elsewhere.
        largest: the largest of the values.
        highest: the largest of the upper ends.
    """

    weights: Interval
    subset: Interval
    stretched: Interval
    precise: RareNumber
    precise_holds: Tensor
    coarse: RareNumber
    coarse_holds: Tensor
    unforeseen: Tensor
    largest: Tensor
    highest: Tensor

    @classmethod
    def of(cls, found: RareSampled, confidence: float) -> Ways:
        """Each way has an interval at `confidence`, the count at half the error, since it may cut off either end."""
        weights, count = by_importance(found, confidence), counted(found, (1.0 + confidence) / 2.0)
        subset, stretched = by_levels(found.subset, confidence), by_levels(found.stretched, confidence)
        value, trusted = found.weighted.nan_to_num(nan=0.0), found.effective >= FEWEST_EFFECTIVE
        highest = _largest(torch.where(trusted, weights.high, value), subset.high, stretched.high)
        top = torch.minimum(highest, count.high)
        precise = RareNumber(value, Interval(torch.maximum(weights.low, count.low), top))
        meets = trusted & found.subset.log.isfinite() & _overlap(subset, weights) & precise.inside
        silent, shrunk = found.stretched.log.isnan(), _shrunk(found, confidence) > highest
        reached = silent | (_overlap(stretched, weights) & (found.surprises <= MOST_SURPRISES))
        foreseen = meets & reached & ~shrunk
        elsewhere = meets & ((found.surprises > MOST_SURPRISES) | (stretched.low > weights.high))
        lowest = torch.maximum(torch.minimum(subset.low, stretched.low), count.low)
        mean = torch.where(foreseen, value, _mean(found.subset, found.stretched))
        coarse = RareNumber(mean, Interval(torch.where(foreseen, precise.interval.low, lowest), top))
        return cls(
            weights,
            subset,
            stretched,
            precise=precise,
            precise_holds=foreseen & (found.strays <= MOST_SURPRISES),
            coarse=coarse,
            coarse_holds=_close(found.subset, found.stretched, confidence) & coarse.inside & ~shrunk,
            unforeseen=shrunk | elsewhere | (stretched.low > subset.high),
            largest=_largest(value, *(each.log.exp().nan_to_num(nan=0.0) for each in (found.subset, found.stretched))),
            highest=highest,
        )


def counted(found: RareSampled, confidence: float) -> Interval:
    """The exact interval by the plain copies; a tie is a flip at the upper end, and none at the lower one."""
    flips, ties = found.flips.cpu().numpy(), found.kept_ties.cpu().numpy()
    low = clopper_pearson(flips - ties, found.drawn, confidence)[0]
    high = clopper_pearson(flips, found.drawn, confidence)[1]
    return Interval(*(torch.from_numpy(end).to(found.weighted) for end in (low, high)))


def by_importance(found: RareSampled, confidence: float) -> Interval:
    """The interval of importance sampling, on the scale of the logarithm, with as many degrees of freedom as draws
    count; 0 where nothing flipped."""
    value = found.weighted.nan_to_num(nan=0.0)
    relative = torch.where(value > 0, found.weighted_error / value, 0.0).nan_to_num(nan=0.0)
    degrees = (found.effective - 1.0).clamp_min(1.0).cpu().numpy()
    quantile = torch.from_numpy(special.stdtrit(degrees, (1.0 + confidence) / 2.0)).to(value)
    width = STRETCH * quantile * torch.log1p(relative.square()).sqrt()
    return Interval(value * torch.exp(-width), value * torch.exp(width))


def by_levels(found: ByLevels, confidence: float) -> Interval:
    """The interval of a product of levels, on the scale of the logarithm; 0 where it came to nothing.

    The chains of a level depend on those of the level before, which adds `UNSEEN` a level to the error that they show;
    the estimate is right in the mean, so its logarithm is low by half its variance.
    """
    variance = _variance(found)
    width = _quantile(confidence) * variance.sqrt()
    log = found.log.nan_to_num(nan=-torch.inf) + variance / 2.0
    return Interval(torch.exp(log - width), torch.exp(log + width))


def _variance(found: ByLevels) -> Tensor:
    """The variance of the logarithm: what the chains show, and what they do not."""
    return (1.0 + UNSEEN * found.levels.double()).square() * found.variance.nan_to_num(nan=0.0)


def _quantile(confidence: float) -> float:
    return float(special.ndtri((1.0 + confidence) / 2.0))


def _mean(one: ByLevels, two: ByLevels) -> Tensor:
    """The mean of two products of levels, on the scale of the logarithm and by their precisions, `[B]`."""
    weights = [1.0 / _variance(each).clamp_min(1e-6) for each in (one, two)]
    logs = [each.log.nan_to_num(nan=-torch.inf) + _variance(each) / 2.0 for each in (one, two)]
    return ((weights[0] * logs[0] + weights[1] * logs[1]) / (weights[0] + weights[1])).exp().clamp_max(1.0)


def _close(one: ByLevels, two: ByLevels, confidence: float) -> Tensor:
    """Whether two products of levels differ by no more than their errors explain, `[B]`."""
    difference = (one.log + _variance(one) / 2.0 - two.log - _variance(two) / 2.0).nan_to_num(nan=torch.inf)
    return difference.abs() <= _quantile(confidence) * (_variance(one) + _variance(two)).sqrt()


def _overlap(one: Interval, other: Interval) -> Tensor:
    return (one.low <= other.high) & (other.low <= one.high)


def _shrunk(found: RareSampled, confidence: float) -> Tensor:
    """The lower end of the share of copies with shrunk noise that flip, `[B]`."""
    drawn = torch.full_like(found.shrunk, found.shrunk_drawn).cpu().numpy()
    return torch.from_numpy(clopper_pearson(found.shrunk.cpu().numpy(), drawn, confidence)[0]).to(found.weighted)


def _largest(*numbers: Tensor) -> Tensor:
    return torch.stack(numbers).amax(dim=0)
