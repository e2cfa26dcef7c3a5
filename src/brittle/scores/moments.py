"""Average-case robustness from the first two moments of the margins under noise, and what scores of them share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.estimate import Estimate, Status
from brittle.measure import Measurement, Sampled
from brittle.orthant import ILL_CONDITIONED_ABOVE, OrthantProbability, orthant_probability
from brittle.scores.base import copies_detail, initial_status, mark
from brittle.scores.evidence import conclude
from brittle.scores.monte_carlo import SampledScore

DRAWS = 100  # noisy copies per point and sigma by default


def normal_model(sampled: Sampled, tolerance: float = 2e-3) -> OrthantProbability:
    """Return the orthant probability of a normal distribution with the moments of the sampled margins."""
    assert sampled.margins is not None
    return orthant_probability(sampled.margins.spread.mean, sampled.margins.covariance, tolerance=tolerance)


def flat(sampled: Sampled) -> Tensor:
    """Return where no copy changed a margin, so that a normal model of them says nothing, `[B]`."""
    assert sampled.margins is not None
    return sampled.margins.spread.variance.amax(dim=1) <= 0


def concluded(
    sampled: Sampled,
    model: OrthantProbability,
    value: Tensor,
    confidence: float,
    by_model: Tensor | None = None,
    stopped: bool = False,
) -> Estimate:
    """`value` with what the copies, their votes and the model say of it; elsewhere than `by_model` it is counted."""
    votes = sampled.votes
    is_modelled = torch.ones_like(sampled.tied) if by_model is None else by_model
    status = initial_status(sampled.tied, votes.nonfinite > 0)
    status = mark(status, is_modelled & flat(sampled), Status.NO_VARIATION)
    status = mark(status, is_modelled & model.complement.isnan(), Status.INDEFINITE)
    status = mark(status, is_modelled & (model.condition > ILL_CONDITIONED_ABOVE), Status.ILL_CONDITIONED)
    detail = copies_detail(votes.nonfinite, votes.draws)
    left_out = None if sampled.left_out is None else torch.where(is_modelled, sampled.left_out, 0.0)
    return conclude(value, status, detail, sampled.passes, votes, confidence, by_model, left_out, stopped)


@dataclass(frozen=True)
class Moments(SampledScore):
    """Flip probability of normal margins with the mean and covariance that the margins have under noise.

    `1 - P(g > 0)`, `g ~ N(m, S)`. From `h` antithetic pairs with margins `g(x + e_j)`, `g(x - e_j)`: `m` the mean of
    the half-sums `even_j`, `S = sum_j odd_j odd_j^T / h + sum_j (even_j - m)(even_j - m)^T / (h - 1)`, `odd_j` the
    half-differences. It keeps the part of the variance that a linearisation throws away, and needs no gradient.

    Validity: exact for linear models and normal noise as the draws grow; elsewhere as good as the margins are normal,
    which no test on these copies can vouch for. The interval is that by counting (`brittle.scores.evidence.counted`),
    stretched to the value, so that it holds for every model. Above 100 classes the 20 competitors that can win are
    integrated; where the others may add more than a tenth of the interval, the status says `classes_kept`.

    Source: this library.

    Attributes:
        draws: noisy copies per point, even, at least 4.
        clip: clip noisy copies to the bounds.
    """

    draws: int = DRAWS

    name: ClassVar[str] = "moments"
    title = "Moments"
    reference = "brittle"
    serves = "all"
    explanation = (
        "Fits a normal distribution to the decision margins of a few noisy copies and integrates it. No gradients; "
        "resolves probabilities very near 1."
    )
    colour = 1
    preference = 1
    model = "counting"
    uses_pairs = True
    fewest = 4

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        sampled: Sampled = measured[self.needs[0]]
        model = normal_model(sampled)
        return concluded(sampled, model, model.complement, confidence)
