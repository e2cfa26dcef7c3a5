"""Average-case robustness by counting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import LIMIT, Estimate
from brittle.intervals import check_share
from brittle.measure import Measurement, Sample, Sampled, SampleUntil
from brittle.measure.base import check_draws
from brittle.measure.noisy_margins import Votes
from brittle.measure.stopping import StoppingRule
from brittle.scores.base import NoiseScore, copies_detail, initial_status
from brittle.scores.evidence import conclude, counted, flips_of

DRAWS = 1000  # noisy copies per point and sigma at most by default
ENOUGH_DRAWS = 200  # noisy copies from which on a fixed count is preferred to every model of the margins


@dataclass(frozen=True)
class SampledScore(NoiseScore):
    """A score of noisy forward passes; all of them at one noise share their draws."""

    draws: int = DRAWS
    clip: bool = False

    cost = "1 + draws per sigma"
    uses_covariance = False
    unsaid = ("clip",)
    fewest = 2  # draws that it takes: two pairs have a spread, a single one has none

    def __post_init__(self) -> None:
        super().__post_init__()
        check_draws(self.draws)
        if self.draws < self.fewest:
            raise ParameterError(f"{self.name} needs at least {self.fewest} draws (two pairs); found {self.draws}")

    @property
    def needs(self) -> tuple[Measurement]:
        return (Sample(self.noise, self.draws, self.clip),)


@dataclass(frozen=True)
class CountedScore(SampledScore):
    """A score of noisy copies of each point that are counted until their interval answers the question.

    Attributes:
        draws: noisy copies per point at most, even; exactly, where neither rule is given.
        clip: clip noisy copies to the bounds.
        limit: count until the interval of `p_robust` leaves this number, between 0 and 1; None for no such rule.
        precision: count until the interval is no wider than this, between 0 and 1, whatever the limit.
    """

    limit: float | None = LIMIT
    precision: float | None = None

    cost = "1 + draws per sigma at most, 61 at clear points"
    model = "counting"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("limit", "precision"):
            check_share(name, getattr(self, name))
        if self.precision is not None:
            object.__setattr__(self, "limit", None)

    @property
    def stops(self) -> bool:
        return self.limit is not None or self.precision is not None

    def copies(self, *, votes_only: bool) -> Measurement:
        """Return independent copies where a rule counts them, else antithetic pairs."""
        if self.stops:
            return SampleUntil(self.noise, self.draws, self.limit, self.precision, self.clip, votes_only)
        return Sample(self.noise, self.draws, self.clip, votes_only)


@dataclass(frozen=True)
class MonteCarlo(CountedScore):
    """Share of noisy copies that lose the predicted class, `1 - p_robust = mean_j 1{argmax z(x + e_j) != t}`.

    The copies are independent, and counted until the interval of `p_robust` leaves `limit`, or is as narrow as
    `precision`. The interval holds at whatever draw one stops (`brittle.intervals.sequence_interval`), for any network.
    The share of a count that was stopped is biased; the value is the estimate of Girshick, Mosteller and Savage (Annals
    of Mathematical Statistics 1946, theorem 4) instead, which is not: of all orders of the draws that would not have
    stopped before, the share that begin with a flip. With ties it is the share.

    Without a rule (`limit=None`) there are exactly `draws`: antithetic pairs `(e, -e)`, shared with `Moments`; of noise
    that is not symmetric, single copies. The interval is exact there: Clopper-Pearson intervals of the shares of pairs
    with a flip and with two, combined (`brittle.intervals.paired_proportion`), or of single copies with a flip.

    A tie is a flip in the value and at the upper end of the interval and none at the lower end, and has a status of its
    own; a NaN is no vote but a status.

    Validity: unbiased for every model, with or without gradients.

    Source: Han et al., Characterizing data point vulnerability via average-case robustness (UAI 2024), section 3.1.

    Attributes are those of `CountedScore`.
    """

    name: ClassVar[str] = "monte_carlo"
    title = "Monte Carlo"
    reference = "Han et al. (UAI 2024), section 3.1"
    serves = "counts"
    explanation = (
        "The share of noisy copies that keep the prediction. Unbiased, and its interval is exact; it cannot tell "
        "points apart that no copy flips."
    )
    colour = 0

    @property
    def needs(self) -> tuple[Measurement]:
        return (self.copies(votes_only=True),)

    @property
    def preference(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The first for fixed draws enough to tell points apart; late where points stop when decided."""
        return 0.0 if self.draws >= ENOUGH_DRAWS and self.limit is None else 7.0

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        sampled: Sampled = measured[self.needs[0]]
        votes = sampled.votes
        status = initial_status(sampled.tied, votes.nonfinite > 0)
        detail = copies_detail(votes.nonfinite, votes.draws)
        value = self._unbiased_shares(votes, confidence) if self.stops else None
        by_model = None if value is None else torch.zeros_like(sampled.tied)
        return conclude(value, status, detail, sampled.passes, votes, confidence, by_model, stopped=self.stops)

    def _unbiased_shares(self, votes: Votes, confidence: float) -> Tensor:
        """Return the flip probability without bias within its interval, or with ties the share, `[B]`."""
        rule = StoppingRule(self.draws, self.limit, self.precision, confidence)
        unbiased = rule.unbiased_shares(flips_of(votes).cpu().numpy(), votes.draws.cpu().numpy())
        share, low, high = counted(votes, confidence, stopped=True)
        return torch.from_numpy(unbiased).to(share).where(votes.ties == 0, share).clamp(low, high)
