"""Flip probabilities too small to count, by ways to sample rare flips that must agree, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from scipy import special
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Evidence, Status
from brittle.intervals import clopper_pearson
from brittle.measure import Measurement, RareFlips, RareSampled
from brittle.measure.rare.rare_flips import ENOUGH_FLIPS, ByLevels
from brittle.scores.base import NoiseScore, finish, initial_status, mark
from brittle.scores.evidence import Interval
from brittle.scores.options import option
from brittle.scores.sound import Serves

COPIES = 200
"""Noisy copies in a level by default."""

WEIGHTED = 500
"""Draws of importance sampling by default."""

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
class RareEvent(NoiseScore):
    """`1 - p_robust = P(argmax z(x + e) != t)` under normal noise, down to 1e-12.

    Where at least 20 of `copies` plain noisy copies flip, their share decides, with its exact interval. Elsewhere the
    rare flips are sampled in three ways that fail differently. *Subset simulation* climbs from the plain copies to the
    flips by levels of the margin, each about a fifth as probable as the one before. *Stretched noise* flips often; it
    is stretched less and less, and only whether copies flip decides what stays, so it needs no margin to lead it.
    *Importance sampling* draws about the flips found and about the nearest ones by gradients, and weights; it is
    precise, and blind where it does not draw. The other two have large errors.

    `ok`: importance sampling has at least 10 effective draws, its interval meets those of the other two, and where it
    expects no flips stretched noise found hardly any, and no more than the upper ends of both. The value is that of
    importance sampling, the interval goes from its lower end to the largest upper end. Where no stretched copy flips
    at all there is nothing to meet. `coarse`: the other two agree within their errors; the value is their mean.
    Elsewhere the value is the largest, and the interval goes from 0 to the largest upper end, that by counting
    included: `unforeseen` where stretched or shrunk noise shows flips that the others did not foresee, `disagree`
    otherwise, `no_flip` where there was none. No number leaves the interval by counting.

    Validity: normal noise. The interval of a number covers the sampling error. It does not cover flips to which no
    margin leads and that few rays from the point meet, or only within a small part of their length: tiny balls, thin
    slabs, narrow corners. Only the interval by counting holds for every network.

    Source: S.-K. Au, J. Beck, Prob. Eng. Mech. 16 (2001), for subset simulation; K. Cheng et al., Rare event estimation
    with sequential directional importance sampling, Struct. Saf. 100 (2023), for stretched noise; A. Owen, Y. Maximov,
    M. Chertkov, Importance sampling the union of rare events, Electron. J. Stat. 13 (2019), for the mixture.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`; normal.
        copies: plain noisy copies, and copies in each level of the other ways, at least 20.
        weighted: draws of importance sampling, at least 20.

    Raises:
        ParameterError: `sigma` is not a positive finite number, the noise is not normal or has no draws, or a number
            is out of range.
    """

    copies: int = field(default=COPIES, metadata=option(flag=False))
    weighted: int = field(default=WEIGHTED, metadata=option(flag=False))

    name: ClassVar[str] = "rare_event"
    title: ClassVar[str] = "Rare events"
    cost: ClassVar[str] = "1 + copies where they flip, about 8,000 per sigma at 1e-6"
    reference: ClassVar[str] = "Au, Beck (2001); Owen et al. (2019)"
    serves: ClassVar[Serves] = "all"
    explanation: ClassVar[str] = (
        "Flip probabilities that no count reaches, by subset simulation, stretched noise and importance sampling: a "
        "number where they agree, elsewhere an upper bound. Many passes."
    )
    preference: ClassVar[float | None] = 9
    model: ClassVar[str | None] = "importance sampling"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.noise.is_normal and self.noise.has_draws):
            raise ParameterError(
                f"{self.name} needs normal noise that says its covariance and has draws, and the family "
                f"{self.noise.name} is not; use brittle.noise.Gaussian, or monte_carlo for this family",
            )
        RareFlips(self.noise, self.copies, self.weighted)

    @property
    def needs(self) -> tuple[Measurement, ...]:
        """Plain copies, subset simulation, importance sampling and stretched noise."""
        return (RareFlips(self.noise, self.copies, self.weighted),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The share of flips where it can be counted, else what the ways to sample them say."""
        found: RareSampled = measured[self.needs[0]]
        by_count, share = counted(found, confidence), found.flips.double() / found.drawn
        enough, ways = found.flips >= ENOUGH_FLIPS, Ways.of(found, confidence)
        some, agree, ok = (ways.largest > 0) | (share > 0), ways.coarse_holds, ways.precise_holds
        upper = torch.maximum(by_count.high, torch.where(some, ways.highest, 0.0)).clamp_max(1.0)
        bound = RareNumber(torch.maximum(ways.largest, share).clamp_max(1.0), Interval(torch.zeros_like(upper), upper))
        number = RareNumber(share, by_count).where(enough, ways.precise.where(ok, ways.coarse.where(agree, bound)))
        status = mark(initial_status(found.tied), found.nonfinite > 0, Status.NONFINITE_LOGITS)
        status = mark(status, found.ties > 0, Status.NOISY_TIES)
        for where, member in (
            (~some, Status.NO_FLIP),
            (agree, Status.COARSE),
            (ways.unforeseen, Status.UNFORESEEN),
            (torch.ones_like(ok), Status.DISAGREE),
        ):
            status = mark(status, ~enough & ~ok & where, member)
        counting = torch.where(enough | ~some, int(Evidence.COUNTED), int(Evidence.SAMPLED))
        ends, detail = (by_count.low, by_count.high), _detail(found, ways, status)
        low, high = number.interval.low, number.interval.high
        return finish(number.value, low, high, status, found.passes, detail, counting, ends)


def _detail(found: RareSampled, ways: Ways, status: Tensor) -> tuple[str | None, ...]:
    """What each way says where no precise number is published, and what broke, `[B]`."""
    each = {"subset simulation": ways.subset, "stretched noise": ways.stretched, "importance sampling": ways.weights}

    def describe(code: int, point: int) -> str | None:
        if code == Status.NONFINITE_LOGITS:
            return f"{int(found.nonfinite[point])} noisy copies gave NaN or infinite logits"
        if code not in (Status.DISAGREE, Status.UNFORESEEN, Status.COARSE):
            return None
        ends = [
            f"{name} says [{float(way.low[point]):.2g}, {float(way.high[point]):.2g}]" for name, way in each.items()
        ]
        seen = f"{', '.join(ends)} with {float(found.effective[point]):.0f} effective draws"
        shrunk = int(found.shrunk[point])
        return seen if not shrunk else f"{seen}; {shrunk} of {found.shrunk_drawn} copies with shrunk noise flip"

    return tuple(describe(code, point) for point, code in enumerate(status.tolist()))


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
        shrunk_share = clopper_pearson(found.shrunk.cpu().numpy(), found.shrunk_drawn, confidence)[0]
        silent, shrunk = found.stretched.log.isnan(), torch.from_numpy(shrunk_share).to(value) > highest
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


def _largest(*numbers: Tensor) -> Tensor:
    return torch.stack(numbers).amax(dim=0)
