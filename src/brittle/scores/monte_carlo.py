"""Average-case robustness by counting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from brittle.estimate import Estimate, Evidence, Parameters, Status
from brittle.measure import Measurement, Sample, Sampled
from brittle.measure.base import check_draws
from brittle.scores.base import NoiseScore, finish, initial_status, mark, nonfinite_detail
from brittle.scores.evidence import counted, judge, vote_detail

DRAWS = 1000
"""Noisy copies per point and sigma by default."""

ENOUGH_DRAWS = 200
"""Noisy copies from which on a count is preferred to every model of the margins."""


@dataclass(frozen=True)
class SampledScore(NoiseScore):
    """A score of noisy forward passes; all of them at one noise share their draws."""

    draws: int = DRAWS
    clip: bool = False

    cost: ClassVar[str] = "1 + draws per sigma"
    uses_covariance: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_draws(self.draws)

    @property
    def needs(self) -> tuple[Sample]:
        """Noisy forward passes in antithetic pairs."""
        return (Sample(self.noise, self.draws, self.clip),)

    @property
    def parameters(self) -> Parameters:
        """The noise, the number of draws, and whether noisy copies were clipped."""
        written = super().parameters
        if not self.clip:
            del written["clip"]
        return written


@dataclass(frozen=True)
class MonteCarlo(SampledScore):
    """Share of noisy copies that lose the predicted class, `1 - p_robust = mean_j 1{argmax z(x + e_j) != t}`.

    The draws are antithetic pairs `(e, -e)`, shared with `Moments`. The interval is exact at any number of draws and
    for any network: Clopper-Pearson intervals of the shares of pairs with a flip and with two, combined
    (`brittle.intervals.paired_proportion`). A tie is a flip in the value and at the upper end of the interval and none
    at the lower end, and has a status of its own; a NaN is no vote but a status.

    Validity: unbiased for every model, with or without gradients.

    Source: Han, Srinivas, Lakkaraju, Characterizing data point vulnerability via average-case robustness (UAI 2024),
    section 3.1.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`.
        draws: noisy copies per point, even.
        clip: clip noisy copies to the bounds.

    Raises:
        ParameterError: `sigma` is not a positive finite number, or `draws` is out of range.
    """

    name: ClassVar[str] = "monte_carlo"
    title: ClassVar[str] = "Monte Carlo"
    reference: ClassVar[str] = "Han et al. (UAI 2024), section 3.1"
    explanation: ClassVar[str] = (
        "The share of noisy copies that keep the prediction. Unbiased, and its interval is exact; it needs many "
        "passes and cannot tell points apart that no draw flips."
    )
    colour: ClassVar[int | None] = 0

    @property
    def preference(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """First with draws enough to tell points apart, late with fewer."""
        return 0.0 if self.draws >= ENOUGH_DRAWS else 7.0

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The share of the copies that flip, with its exact interval."""
        sampled: Sampled = measured[self.needs[0]]
        votes = sampled.votes
        value, interval = counted(votes, confidence)
        status = mark(initial_status(sampled.tied), votes.nonfinite > 0, Status.NONFINITE_LOGITS)
        status = judge(status, value, interval, votes, interval)
        detail = vote_detail(status, votes, interval, nonfinite_detail(votes.nonfinite, votes.draws))
        evidence = torch.full_like(status, int(Evidence.COUNTED))
        ends = (interval.low, interval.high)
        return finish(value, *ends, status, sampled.passes, detail, evidence, ends)
