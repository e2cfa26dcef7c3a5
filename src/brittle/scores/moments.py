"""Average-case robustness from the first two moments of the margins under noise, and what scores of them share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Evidence, Status
from brittle.measure import Measurement, Sampled
from brittle.orthant import ILL_CONDITIONED_ABOVE, orthant_probability
from brittle.scores.base import initial_status, mark, nonfinite_detail
from brittle.scores.evidence import conclude, evidence_of
from brittle.scores.monte_carlo import SampledScore
from brittle.scores.sound import Serves

DRAWS = 100
"""Noisy copies per point and sigma by default."""


@dataclass(frozen=True)
class NormalModel:
    """What a normal model of the margins says of a batch, `[B]` each.

    Attributes:
        value: flip probability.
        flat: where no copy changed a margin, so that it says nothing.
        indefinite: where it has no number.
        ill_conditioned: where the margins are almost linearly dependent.
    """

    value: Tensor
    flat: Tensor
    indefinite: Tensor
    ill_conditioned: Tensor


@dataclass(frozen=True)
class ModelledScore(SampledScore):
    """A score that reads a normal model of the margins."""

    draws: int = DRAWS

    model: ClassVar[str | None] = "counting"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draws < 4:
            raise ParameterError(f"{self.name} needs at least 4 draws (two pairs); found {self.draws}")

    def normal_model(self, sampled: Sampled) -> NormalModel:
        """The orthant probability of a normal distribution with the moments of the sampled margins."""
        margins = sampled.margins
        assert margins is not None
        orthant = orthant_probability(margins.spread.mean, margins.covariance)
        value = orthant.complement
        return NormalModel(
            value=value,
            flat=margins.spread.variance.amax(dim=1) <= 0,
            indefinite=value.isnan(),
            ill_conditioned=orthant.condition > ILL_CONDITIONED_ABOVE,
        )


def concluded(
    sampled: Sampled, model: NormalModel, value: Tensor, confidence: float, only_counted: Tensor | None = None
) -> Estimate:
    """`value` with what the copies, their votes and the model say of it.

    Where it is `only_counted`, `[B]`, the model says nothing and is not asked.
    """
    votes = sampled.votes
    by_model = torch.ones_like(model.flat) if only_counted is None else ~only_counted
    status = mark(initial_status(sampled.tied), votes.nonfinite > 0, Status.NONFINITE_LOGITS)
    status = mark(status, model.flat & by_model, Status.NO_VARIATION)
    status = mark(status, model.indefinite & by_model, Status.INDEFINITE)
    status = mark(status, model.ill_conditioned & by_model, Status.ILL_CONDITIONED)
    status = mark(status, torch.full_like(sampled.tied, sampled.left_out), Status.CLASSES_KEPT)
    evidence = torch.where(by_model, evidence_of(value, votes.draws), int(Evidence.COUNTED))
    detail = nonfinite_detail(votes.nonfinite, votes.draws)
    return conclude(value, status, detail, sampled.passes, votes, confidence, evidence)


@dataclass(frozen=True)
class Moments(ModelledScore):
    """Flip probability of normal margins with the mean and covariance that the margins have under noise.

    `1 - P(g > 0)`, `g ~ N(m, S)`. From `h` antithetic pairs with margins `g(x + e_j)`, `g(x - e_j)`: `m` the mean of
    the half-sums `even_j`, `S = sum_j odd_j odd_j^T / h + sum_j (even_j - m)(even_j - m)^T / (h - 1)`, `odd_j` the
    half-differences. It keeps the part of the variance that a linearisation throws away, and needs no gradient.

    Validity: exact for linear models and normal noise as the draws grow; elsewhere as good as the margins are
    normal, which no test on these copies can vouch for. The interval is that by counting
    (`brittle.scores.evidence.counted`), stretched to the value, so that it holds for every model.

    Source: this library.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`.
        draws: noisy copies per point, even, at least 4.
        clip: clip noisy copies to the bounds.

    Raises:
        ParameterError: `sigma` is not a positive finite number, `draws` is out of range, or the noise is not symmetric.
    """

    name: ClassVar[str] = "moments"
    title: ClassVar[str] = "Moments"
    reference: ClassVar[str] = "brittle"
    serves: ClassVar[Serves] = "all"
    explanation: ClassVar[str] = (
        "Fits a normal distribution to the decision margins of a few noisy copies and integrates it. No gradients; "
        "resolves probabilities very near 1."
    )
    colour: ClassVar[int | None] = 1
    preference: ClassVar[float | None] = 1
    uses_pairs: ClassVar[bool] = True

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The number of the normal model."""
        sampled: Sampled = measured[self.needs[0]]
        model = self.normal_model(sampled)
        return concluded(sampled, model, model.value, confidence)
