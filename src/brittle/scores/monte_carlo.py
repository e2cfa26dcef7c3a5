"""Average-case robustness by counting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Evidence, Status
from brittle.intervals import check_share, sequence_interval
from brittle.measure import Measurement, Sample, Sampled, SampleUntil, StoppedVotes
from brittle.measure.base import check_draws
from brittle.measure.stopping import StoppingRule
from brittle.scores.base import NoiseScore, copies_detail, finish, initial_status, mark
from brittle.scores.evidence import TIE, VACUOUS_FROM, by_class, conclude

DRAWS = 1000
"""Noisy copies per point and sigma by default."""

ENOUGH_DRAWS = 200
"""Noisy copies from which on a count is preferred to every model of the margins."""


@dataclass(frozen=True)
class SampledScore(NoiseScore):
    """A score of noisy forward passes; all of them at one noise share their draws."""

    draws: int = DRAWS
    clip: bool = False

    cost = "1 + draws per sigma"
    uses_covariance = False
    unsaid = ("clip",)
    fewest = 2
    """Draws that it takes: two pairs have a spread, a single one has none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_draws(self.draws)
        if self.draws < self.fewest:
            raise ParameterError(f"{self.name} needs at least {self.fewest} draws (two pairs); found {self.draws}")

    @property
    def needs(self) -> tuple[Measurement]:
        return (Sample(self.noise, self.draws, self.clip),)


@dataclass(frozen=True)
class MonteCarlo(SampledScore):
    """Share of noisy copies that lose the predicted class, `1 - p_robust = mean_j 1{argmax z(x + e_j) != t}`.

    The draws are antithetic pairs `(e, -e)`, shared with `Moments`; of noise that is not symmetric, single copies. The
    interval is exact at any number of draws and for any network: Clopper-Pearson intervals of the shares of pairs with
    a flip and with two, combined (`brittle.intervals.paired_proportion`), or of single copies with a flip. A tie
    is a flip in the value and at the upper end of the interval and none at the lower end, and has a status of its own;
    a NaN is no vote but a status.

    With `limit` or `precision` a point has as many draws as that question needs, and `draws` at most. They are
    independent then, and no other score reads them. The interval holds at whatever draw one stops
    (`brittle.intervals.sequence_interval`). The share of a count that was stopped is biased; the value is the estimate
    of Girshick, Mosteller and Savage (Annals of Mathematical Statistics 1946, theorem 4) instead, which is not: of all
    orders of the draws that would not have stopped before, the share that begin with a flip. With ties it is the share.

    Validity: unbiased for every model, with or without gradients.

    Source: Han, Srinivas, Lakkaraju, Characterizing data point vulnerability via average-case robustness (UAI 2024),
    section 3.1.

    Attributes:
        draws: noisy copies per point, even; at most, where a rule stops earlier.
        clip: clip noisy copies to the bounds.
        limit: draw for a point until the interval of `p_robust` leaves this number, between 0 and 1.
        precision: draw for a point until its interval is no wider than this, between 0 and 1.
    """

    limit: float | None = None
    precision: float | None = None

    name: ClassVar[str] = "monte_carlo"
    title = "Monte Carlo"
    reference = "Han et al. (UAI 2024), section 3.1"
    serves = "counts"
    explanation = (
        "The share of noisy copies that keep the prediction. Unbiased, and its interval is exact; it needs many "
        "passes and cannot tell points apart that no draw flips."
    )
    colour = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("limit", "precision"):
            check_share(name, getattr(self, name))

    @property
    def stops(self) -> bool:
        """Whether points have as many draws as they need, and not all of them."""
        return self.limit is not None or self.precision is not None

    @property
    def needs(self) -> tuple[Measurement]:
        if not self.stops:
            return (Sample(self.noise, self.draws, self.clip, votes_only=True),)
        return (SampleUntil(self.noise, self.draws, self.limit, self.precision, self.clip),)

    @property
    def preference(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """First with draws enough to tell points apart, late with fewer, as where points stop once they are decided."""
        return 0.0 if self.draws >= ENOUGH_DRAWS and self.limit is None else 7.0

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        found: Sampled | StoppedVotes = measured[self.needs[0]]
        if isinstance(found, StoppedVotes):
            return _stopped(found, StoppingRule(self.draws, self.limit, self.precision, confidence))
        status = initial_status(found.tied, found.votes.nonfinite > 0)
        detail = copies_detail(found.votes.nonfinite, found.votes.draws)
        return conclude(None, status, detail, found.passes, found.votes, confidence)


def _stopped(counts: StoppedVotes, rule: StoppingRule) -> Estimate:
    """The unbiased share of the copies that flip where every point had as many as it needed; a confidence sequence."""
    draws, flips = counts.draws.cpu().numpy(), counts.flips.cpu().numpy()
    low = sequence_interval(counts.flips_without_ties.cpu().numpy(), draws, rule.confidence)[0]
    high = sequence_interval(flips, draws, rule.confidence)[1]
    without_ties = (counts.ties == 0).cpu().numpy()
    share = flips / np.maximum(draws, 1)
    share[without_ties] = rule.unbiased_shares(flips[without_ties], draws[without_ties])
    numbers = (share.clip(low, high), low, high)
    value, low, high = (torch.from_numpy(each).to(counts.draws.device) for each in numbers)
    status = initial_status(counts.tied, counts.nonfinite > 0)
    status = mark(status, counts.ties > 0, Status.NOISY_TIES)
    status = mark(status, high - low >= VACUOUS_FROM, Status.VACUOUS)
    broken = copies_detail(counts.nonfinite, counts.draws)
    tied = copies_detail(counts.ties, counts.draws, TIE)
    detail = tuple(one or other for one, other in zip(broken, tied, strict=True))
    counted = torch.full_like(status, int(Evidence.COUNTED))
    found = finish(value, low, high, status, counts.passes, detail, counted, (low, high))
    return replace(found, votes=by_class(counts.draws, counts.classes))
