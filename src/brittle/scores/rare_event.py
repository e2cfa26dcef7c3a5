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
from brittle.scores.options import option
from brittle.scores.rare_ways import Ways, counted
from brittle.scores.sound import Serves

COPIES = 200
"""Noisy copies in a level by default."""


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
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`; normal.
        copies: plain noisy copies, and copies in each level of both ways, at least 20.

    Raises:
        ParameterError: `sigma` is not a positive finite number, the noise is not normal or has no draws, or a number
            is out of range.
    """

    copies: int = field(default=COPIES, metadata=option(flag=False))

    name: ClassVar[str] = "rare_event"
    title: ClassVar[str] = "Rare events"
    cost: ClassVar[str] = "1 + copies where they flip, about 7,000 per sigma at 1e-6"
    reference: ClassVar[str] = "Au, Beck (2001); Cheng et al. (2023)"
    serves: ClassVar[Serves] = "all"
    explanation: ClassVar[str] = (
        "Flip probabilities that no count reaches, by subset simulation and stretched noise: a number where both "
        "agree, elsewhere an upper bound. Many passes."
    )
    preference: ClassVar[float | None] = 9
    model: ClassVar[str | None] = "sampling by levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.noise.normal and self.noise.has_draws):
            raise ParameterError(
                f"{self.name} needs normal noise that says its covariance and has draws, and the family "
                f"{self.noise.name} is not; use brittle.noise.Gaussian, or monte_carlo for this family",
            )
        RareFlips(self.noise, self.copies)

    @property
    def needs(self) -> tuple[Measurement, ...]:
        """Plain copies, subset simulation and stretched noise."""
        return (RareFlips(self.noise, self.copies),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The share of flips where it can be counted, else the number on which both ways agree, or a bound."""
        sampled: RareSampled = measured[self.needs[0]]
        count, share = counted(sampled, confidence), sampled.flips.double() / sampled.drawn
        enough, ways = sampled.flips >= ENOUGH_FLIPS, Ways.of(sampled, confidence)
        some = (ways.largest > 0) | (share > 0)
        upper = torch.maximum(count.high, torch.where(some, ways.highest, 0.0)).clamp_max(1.0)
        value = torch.where(ways.agree, ways.value, torch.maximum(ways.largest, share).clamp_max(1.0))
        value = torch.where(enough, share, value)
        low = torch.where(enough, count.low, torch.where(ways.agree, ways.interval.low, 0.0))
        high = torch.where(enough, count.high, torch.where(ways.agree, ways.interval.high, upper))
        status = mark(initial_status(sampled.tied), sampled.nonfinite > 0, Status.NONFINITE_LOGITS)
        status = mark(status, sampled.ties > 0, Status.NOISY_TIES)
        for where, member in (
            (~some, Status.NO_FLIP),
            (ways.agree, Status.COARSE),
            (ways.unforeseen, Status.UNFORESEEN),
            (torch.ones_like(enough), Status.DISAGREE),
        ):
            status = mark(status, ~enough & where, member)
        counting = torch.where(enough | ~some, int(Evidence.COUNTED), int(Evidence.SAMPLED))
        detail = _detail(sampled, ways, status)
        return finish(value, low, high, status, sampled.passes, detail, counting, (count.low, count.high))


def _detail(sampled: RareSampled, ways: Ways, status: Tensor) -> tuple[str | None, ...]:
    """The interval of each way where the number is sampled or a bound, and what broke, `[B]`."""

    def describe(code: int, point: int) -> str | None:
        if code == Status.NONFINITE_LOGITS:
            return f"{int(sampled.nonfinite[point])} noisy copies gave NaN or infinite logits"
        if code not in (Status.DISAGREE, Status.UNFORESEEN, Status.COARSE):
            return None
        text = ", ".join(
            f"{name} says [{float(way.low[point]):.2g}, {float(way.high[point]):.2g}]"
            for name, way in (("subset simulation", ways.subset), ("stretched noise", ways.stretched))
        )
        shrunk = int(sampled.shrunk[point])
        return f"{text}; {shrunk} of {sampled.shrunk_drawn} copies with shrunk noise flip" if shrunk else text

    return tuple(describe(code, point) for point, code in enumerate(status.tolist()))
