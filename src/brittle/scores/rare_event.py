"""Flip probabilities too small to count, by two ways to sample rare flips that must agree."""

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
from brittle.measure.rare.rare_flips import ENOUGH_FLIPS
from brittle.scores.base import NoiseScore, finish, initial_status, mark
from brittle.scores.evidence import Interval
from brittle.scores.options import option

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
"""By how much a level adds to the standard error of subset simulation beyond what its chains show, as a share."""


MOST_SURPRISES = 0.1
"""Share of the flips by stretched noise that importance sampling may not have expected."""


@dataclass(frozen=True)
class RareEvent(NoiseScore):
    """`1 - p_robust = P(argmax z(x + e) != t)` under normal noise, down to 1e-12.

    Where at least 20 of `copies` plain noisy copies flip, their share decides, with its exact interval. Elsewhere the
    rare flips are sampled in two ways that fail differently. *Subset simulation* climbs from the plain copies to the
    flips by levels of the margin, each about a fifth as probable as the one before; it needs no gradients and finds
    flips in every direction, with a large error. *Importance sampling* draws about the flips found and about the
    nearest ones by gradients, and weights; it is precise, and blind where it does not draw.

    Where their intervals overlap the value is that of importance sampling; the interval reaches from its lower end to
    the upper end of either, within the interval by counting. Where they do not, or where importance sampling has fewer
    than 10 effective draws, the status is `disagree`, the value the larger of the two, and the interval goes from 0 to
    the largest upper end, that by counting included (of importance sampling with fewer draws, its value). Where no
    flip was found the status is `no_flip`, the value 0.

    Validity: normal noise. The interval of a number with status `ok` covers the sampling error of both ways, and a
    share of the flips that importance sampling misses as far as subset simulation sees it. It does not cover flips to
    which neither is led, such as a cliff in a direction in which no margin falls before: only the upper end by
    counting holds for every network. Without gradients there is no second way, and so no number.

    Source: S.-K. Au, J. Beck, Prob. Eng. Mech. 16 (2001), for subset simulation; A. Owen, Y. Maximov, M. Chertkov,
    Importance sampling the union of rare events, Electron. J. Stat. 13 (2019), for the mixture.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`; normal.
        copies: plain noisy copies, and copies in each level of subset simulation, at least 20.
        weighted: draws of importance sampling, at least 20.

    Raises:
        ParameterError: `sigma` is not a positive finite number, the noise is not normal or has no draws, or a number
            is out of range.
    """

    copies: int = field(default=COPIES, metadata=option("level_copies"))
    weighted: int = field(default=WEIGHTED, metadata=option("importance_draws"))

    name: ClassVar[str] = "rare_event"
    title: ClassVar[str] = "Rare events"
    cost: ClassVar[str] = "1 + copies where they flip, about 2,200 per sigma at 1e-6"
    reference: ClassVar[str] = "Au, Beck (2001); Owen et al. (2019)"
    explanation: ClassVar[str] = (
        "Flip probabilities that no count reaches, by subset simulation and importance sampling: a number where both "
        "agree, elsewhere an upper bound. Many passes."
    )
    preference: ClassVar[float | None] = 9
    model: ClassVar[str | None] = "importance sampling"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.noise.is_normal and self.noise.has_draws):
            raise ParameterError(
                "noise_normal",
                f"{self.name} needs normal noise that says its covariance and has draws, and the family "
                f"{self.noise.name} is not; use brittle.noise.Gaussian, or monte_carlo for this family",
            )
        RareFlips(self.noise, self.copies, self.weighted)

    @property
    def needs(self) -> tuple[Measurement, ...]:
        """Plain copies, subset simulation and importance sampling."""
        return (RareFlips(self.noise, self.copies, self.weighted),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The share of flips where it can be counted, else what the ways to sample them say."""
        found: RareSampled = measured[self.needs[0]]
        share = found.flips.double() / found.drawn
        by_count = _counted(found, confidence)
        enough = found.flips >= ENOUGH_FLIPS
        said = Said.of(found, confidence)
        some = (said.largest > 0) | (share > 0)
        upper = torch.maximum(by_count.high, torch.where(some, said.highest, 0.0)).clamp_max(1.0)
        bound = Number(torch.maximum(said.largest, share).clamp_max(1.0), Interval(torch.zeros_like(upper), upper))
        number = Number(share, by_count).where(
            enough, said.precise.where(said.ok, said.coarse.where(said.agree, bound))
        )
        status = mark(initial_status(found.tied), found.nonfinite > 0, Status.NONFINITE_LOGITS)
        status = mark(status, found.ties > 0, Status.NOISY_TIES)
        for where, member in (
            (~some, Status.NO_FLIP),
            (~said.ok & said.agree, Status.COARSE),
            (~said.ok & ~said.agree & said.unforeseen, Status.UNFORESEEN),
            (~said.ok & ~said.agree & ~said.unforeseen, Status.DISAGREE),
        ):
            status = mark(status, ~enough & where, member)
        counting = torch.where(enough | ~some, int(Evidence.COUNTED), int(Evidence.SAMPLED))
        ends, detail = (by_count.low, by_count.high), _detail(found, status, confidence)
        low, high = number.interval.low, number.interval.high
        return finish(number.value, low, high, status, found.passes, detail, counting, ends)


def _counted(found: RareSampled, confidence: float) -> Interval:
    """The exact interval by the plain copies; a tie is a flip at the upper end, and none at the lower one."""
    flips, ties = found.flips.cpu().numpy(), found.kept_ties.cpu().numpy()
    low = clopper_pearson(flips - ties, found.drawn, confidence)[0]
    high = clopper_pearson(flips, found.drawn, confidence)[1]
    return Interval(*(torch.from_numpy(end).to(found.subset) for end in (low, high)))


@dataclass(frozen=True)
class Number:
    """A flip probability with its interval, `[B]`."""

    value: Tensor
    interval: Interval

    def where(self, chosen: Tensor, other: Number) -> Number:
        """This one where `chosen` holds, else the other."""
        one, two = self.interval, other.interval
        ends = (torch.where(chosen, a, b) for a, b in ((one.low, two.low), (one.high, two.high)))
        return Number(torch.where(chosen, self.value, other.value), Interval(*ends))


@dataclass(frozen=True)
class Said:
    """What the three ways to sample rare flips say together, `[B]` each.

    Attributes:
        precise: the number of importance sampling, whose interval reaches up to the upper ends of all.
        ok: whether that may be said: the others agree with it, and no flip was found where it expects none.
        coarse: what subset simulation and stretched noise say without it.
        agree: whether that may be said: these two agree.
        unforeseen: whether stretched or shrunk noise flips more than the others foresaw, or elsewhere.
        largest: the largest of the numbers.
        highest: the largest of the upper ends.
    """

    precise: Number
    ok: Tensor
    coarse: Number
    agree: Tensor
    unforeseen: Tensor
    largest: Tensor
    highest: Tensor

    @classmethod
    def of(cls, found: RareSampled, confidence: float) -> Said:
        """What was sampled; each way has an interval at `confidence`, the count one at half the error, since it may
        cut off either end."""
        weights, levels, stretched = (by(found, confidence) for by in (by_importance, by_subset, by_stretching))
        count = _counted(found, (1.0 + confidence) / 2.0)
        silent = found.stretched.isnan() & found.subset.isfinite()
        trusted = (found.effective >= FEWEST_EFFECTIVE) & found.subset.isfinite()
        value = found.weighted.nan_to_num(nan=0.0)
        highest = torch.maximum(torch.maximum(torch.where(trusted, weights.high, value), levels.high), stretched.high)
        precise = Number(value, Interval(torch.maximum(weights.low, count.low), torch.minimum(highest, count.high)))
        coarse = _coarse(found, levels, stretched, torch.where(trusted, weights.high, value), count)
        shrunk = _shrunk(found, confidence) > highest
        meets = trusted & _overlap(levels, weights) & ~precise.interval.excludes(value)
        surprised = ~silent & (~_overlap(stretched, weights) | (found.surprises > MOST_SURPRISES))
        close = _close(found, confidence) & ~coarse.interval.excludes(coarse.value) & ~shrunk
        return cls(
            precise=precise,
            ok=meets & ~surprised & ~shrunk,
            coarse=coarse,
            agree=close,
            unforeseen=shrunk | (meets & surprised) | (stretched.low > levels.high),
            largest=torch.maximum(
                torch.maximum(value, found.subset.exp().nan_to_num()), found.stretched.exp().nan_to_num()
            ),
            highest=highest,
        )


def _overlap(one: Interval, other: Interval) -> Tensor:
    return (one.low <= other.high) & (other.low <= one.high)


def _shrunk(found: RareSampled, confidence: float) -> Tensor:
    """The lower end of the share of copies with shrunk noise that flip, `[B]`."""
    drawn = torch.full_like(found.shrunk, found.shrunk_drawn).cpu().numpy()
    return torch.from_numpy(clopper_pearson(found.shrunk.cpu().numpy(), drawn, confidence)[0]).to(found.subset)


def _close(found: RareSampled, confidence: float) -> Tensor:
    """Whether subset simulation and stretched noise differ by no more than their errors explain, `[B]`."""
    difference = (found.subset - found.stretched).nan_to_num(nan=torch.inf)
    quantile = float(special.ndtri((1.0 + confidence) / 2.0))
    error = (
        _variance(found.subset_variance, found.levels) + _variance(found.stretched_variance, found.stretched_levels)
    ).sqrt()
    return found.subset.isfinite() & (difference.abs() <= quantile * error)


def _coarse(found: RareSampled, levels: Interval, stretched: Interval, precise: Tensor, count: Interval) -> Number:
    """The mean of subset simulation and stretched noise, on the scale of the logarithm and by their precisions; its
    interval reaches from the lower end of either to the largest upper end."""
    parts = (
        (found.subset, found.subset_variance, found.levels),
        (found.stretched, found.stretched_variance, found.stretched_levels),
    )
    total = weight = torch.zeros_like(found.subset)
    for log, variance, number in parts:
        spread = _variance(variance, number).clamp_min(1e-6)
        total, weight = total + (log.nan_to_num(nan=-torch.inf) + spread / 2.0) / spread, weight + 1.0 / spread
    value = (total / weight).exp().clamp_max(1.0)
    high = torch.maximum(torch.maximum(levels.high, stretched.high), precise)
    low = torch.maximum(torch.minimum(levels.low, stretched.low), count.low)
    return Number(value, Interval(low, torch.minimum(high, count.high)))


def by_importance(found: RareSampled, confidence: float) -> Interval:
    """The interval of importance sampling, on the scale of the logarithm, with as many degrees of freedom as draws
    count; 0 where nothing flipped."""
    value = found.weighted.nan_to_num(nan=0.0)
    relative = torch.where(value > 0, found.weighted_error / value, 0.0).nan_to_num(nan=0.0)
    degrees = (found.effective - 1.0).clamp_min(1.0).cpu().numpy()
    quantile = torch.from_numpy(special.stdtrit(degrees, (1.0 + confidence) / 2.0)).to(value)
    width = STRETCH * quantile * torch.log1p(relative.square()).sqrt()
    return Interval(value * torch.exp(-width), value * torch.exp(width))


def by_stretching(found: RareSampled, confidence: float) -> Interval:
    """The interval by stretched noise, as that of subset simulation; 0 where its chains did not reach the noise."""
    return _by_levels(found.stretched, found.stretched_variance, found.stretched_levels, confidence)


def by_subset(found: RareSampled, confidence: float) -> Interval:
    """The interval of subset simulation, on the scale of the logarithm; 0 where it found no flip.

    The chains of a level depend on those of the level before, which adds `UNSEEN` a level to the error that they show;
    the estimate is right in the mean, so its logarithm is low by half its variance.
    """
    return _by_levels(found.subset, found.subset_variance, found.levels, confidence)


def _by_levels(log_probability: Tensor, variance: Tensor, levels: Tensor, confidence: float) -> Interval:
    spread = _variance(variance, levels)
    quantile = float(special.ndtri((1.0 + confidence) / 2.0))
    log = log_probability.nan_to_num(nan=-torch.inf) + spread / 2.0
    return Interval(torch.exp(log - quantile * spread.sqrt()), torch.exp(log + quantile * spread.sqrt()))


def _variance(shown: Tensor, levels: Tensor) -> Tensor:
    """The variance of a logarithm of levels: what the chains show, and what they do not."""
    return (1.0 + UNSEEN * levels).square() * shown.nan_to_num(nan=0.0)


def _detail(found: RareSampled, status: Tensor, confidence: float) -> tuple[str | None, ...]:
    """What each way says where they disagree, and what broke, `[B]`."""
    levels, weights = by_subset(found, confidence), by_importance(found, confidence)

    def describe(code: int, point: int) -> str | None:
        if code == Status.NONFINITE_LOGITS:
            return f"{int(found.nonfinite[point])} noisy copies gave NaN or infinite logits"
        if code != Status.DISAGREE:
            return None
        ends = (f"[{float(each.low[point]):.2g}, {float(each.high[point]):.2g}]" for each in (levels, weights))
        first, second = ends
        effective = float(found.effective[point])
        return f"subset simulation says {first}, importance sampling {second} with {effective:.0f} effective draws"

    return tuple(describe(code, point) for point, code in enumerate(status.tolist()))
