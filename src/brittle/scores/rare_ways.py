"""The two ways to sample rare flips together: whether they agree, and the number that may be published then."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from scipy import special
from torch import Tensor

from brittle.intervals import clopper_pearson
from brittle.measure import RareSampled
from brittle.measure.rare.rare_flips import ByLevels
from brittle.scores.evidence import Interval

UNSEEN = 0.03
"""By how much a level adds to the standard error of a product of levels beyond what its chains show, as a share."""


@dataclass(frozen=True)
class Ways:
    """Subset simulation and stretched noise, `[B]` each.

    Attributes:
        subset: the interval of subset simulation.
        stretched: that of stretched noise.
        value: their mean, on the scale of the logarithm and by their precisions.
        interval: of it: the ends of both, no wider than the interval by counting.
        agree: whether that number may be published: they differ by no more than their errors explain, it lies in its
            interval, and shrunk noise shows no flips that they did not foresee.
        unforeseen: whether stretched noise finds more flips than subset simulation, or shrunk noise than both.
        largest: the larger of the two values.
        highest: the larger of the two upper ends.
    """

    subset: Interval
    stretched: Interval
    value: Tensor
    interval: Interval
    agree: Tensor
    unforeseen: Tensor
    largest: Tensor
    highest: Tensor

    @classmethod
    def of(cls, sampled: RareSampled, confidence: float) -> Ways:
        """Each way has an interval at `confidence`, the count at half the error, since it may cut off either end."""
        one, two, count = sampled.subset, sampled.stretched, counted(sampled, (1.0 + confidence) / 2.0)
        subset, stretched = by_levels(one, confidence), by_levels(two, confidence)
        highest, value = torch.maximum(subset.high, stretched.high), _mean(one, two)
        low = torch.maximum(torch.minimum(subset.low, stretched.low), count.low)
        interval = Interval(low, torch.minimum(highest, count.high))
        shrunk = _shrunk(sampled, confidence) > highest
        close = _difference(one, two) <= _quantile(confidence) * (_variance(one) + _variance(two)).sqrt()
        return cls(
            subset,
            stretched,
            value,
            interval,
            agree=close & ~interval.excludes(value) & ~shrunk,
            unforeseen=shrunk | (stretched.low > subset.high),
            largest=torch.maximum(*(each.log.exp().nan_to_num(nan=0.0) for each in (one, two))),
            highest=highest,
        )


def counted(sampled: RareSampled, confidence: float) -> Interval:
    """The exact interval by the plain copies; a tie is a flip at the upper end, and none at the lower one."""
    flips, ties = sampled.flips.cpu().numpy(), sampled.ties.cpu().numpy()
    low = clopper_pearson(flips - ties, sampled.drawn, confidence)[0]
    high = clopper_pearson(flips, sampled.drawn, confidence)[1]
    return Interval(*(torch.from_numpy(end).to(sampled.subset.log) for end in (low, high)))


def by_levels(product: ByLevels, confidence: float) -> Interval:
    """The interval of a product of levels, on the scale of the logarithm; 0 where it came to nothing.

    The chains of a level depend on those of the level before, which adds `UNSEEN` a level to the error that they show.
    """
    width, log = _quantile(confidence) * _variance(product).sqrt(), _log(product)
    return Interval(torch.exp(log - width), torch.exp(log + width))


def _variance(product: ByLevels) -> Tensor:
    """The variance of the logarithm: what the chains show, and what they do not."""
    return (1.0 + UNSEEN * product.levels.double()).square() * product.variance.nan_to_num(nan=0.0)


def _log(product: ByLevels) -> Tensor:
    """The logarithm, raised by half its variance, by which that of an estimate that is right in the mean is low."""
    return product.log.nan_to_num(nan=-torch.inf) + _variance(product) / 2.0


def _quantile(confidence: float) -> float:
    return float(special.ndtri((1.0 + confidence) / 2.0))


def _mean(one: ByLevels, two: ByLevels) -> Tensor:
    weights = [1.0 / _variance(each).clamp_min(1e-6) for each in (one, two)]
    return ((weights[0] * _log(one) + weights[1] * _log(two)) / (weights[0] + weights[1])).exp().clamp_max(1.0)


def _difference(one: ByLevels, two: ByLevels) -> Tensor:
    """How far apart their logarithms are, `[B]`; infinity where one came to nothing."""
    return (_log(one) - _log(two)).nan_to_num(nan=torch.inf).abs()


def _shrunk(sampled: RareSampled, confidence: float) -> Tensor:
    """The lower end of the share of copies with shrunk noise that flip, `[B]`."""
    drawn = torch.full_like(sampled.shrunk, sampled.shrunk_drawn).cpu().numpy()
    return torch.from_numpy(clopper_pearson(sampled.shrunk.cpu().numpy(), drawn, confidence)[0]).to(sampled.subset.log)
