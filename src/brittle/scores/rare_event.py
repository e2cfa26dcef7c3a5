"""Flip probabilities too small to count, by ways to sample rare flips that must agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Evidence, Status
from brittle.measure import Measurement, RareFlips, RareSampled
from brittle.measure.rare.rare_flips import ENOUGH_FLIPS
from brittle.scores.base import NoiseScore, finish, initial_status, mark
from brittle.scores.evidence import Interval
from brittle.scores.options import option
from brittle.scores.rare_ways import RareNumber, Ways, counted
from brittle.scores.serving import Serves

COPIES = 200
"""Noisy copies in a level by default."""

WEIGHTED = 500
"""Draws of importance sampling by default."""


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

    copies: int = field(default=COPIES, metadata=option("level_copies"))
    weighted: int = field(default=WEIGHTED, metadata=option("importance_draws"))

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
        ends, detail = (by_count.low, by_count.high), _detail(found, status, confidence)
        low, high = number.interval.low, number.interval.high
        return finish(number.value, low, high, status, found.passes, detail, counting, ends)


def _detail(found: RareSampled, status: Tensor, confidence: float) -> tuple[str | None, ...]:
    """What each way says where no precise number is published, and what broke, `[B]`."""
    ways = Ways.of(found, confidence)
    named = {
        "subset simulation": ways.subset,
        "stretched noise": ways.stretched,
        "importance sampling": ways.weights,
    }

    def describe(code: int, point: int) -> str | None:
        if code == Status.NONFINITE_LOGITS:
            return f"{int(found.nonfinite[point])} noisy copies gave NaN or infinite logits"
        if code not in (Status.DISAGREE, Status.UNFORESEEN, Status.COARSE):
            return None
        ends = [
            f"{name} says [{float(way.low[point]):.2g}, {float(way.high[point]):.2g}]" for name, way in named.items()
        ]
        told = f"{', '.join(ends)} with {float(found.effective[point]):.0f} effective draws"
        shrunk = int(found.shrunk[point])
        return told if not shrunk else f"{told}; {shrunk} of {found.shrunk_drawn} copies with shrunk noise flip"

    return tuple(describe(code, point) for point, code in enumerate(status.tolist()))
