"""Average-case robustness from the first two moments of the margins under noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, special

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Status
from brittle.measure import Measurement, Sampled
from brittle.orthant import ILL_CONDITIONED_ABOVE, orthant_probability
from brittle.scores.base import finish, initial_status, mark, nonfinite_detail, sampling_interval
from brittle.scores.linear import REPLICATE_TOLERANCE, log_odds
from brittle.scores.monte_carlo import SampledScore

DRAWS = 100
"""Noisy copies per point and sigma unless told."""


@dataclass(frozen=True)
class Moments(SampledScore):
    """Flip probability of normal margins with the mean and covariance that the margins have under noise.

    `1 - P(g > 0)`, `g ~ N(m, S)`. From `h` antithetic pairs with margins `g(x + e_j)`, `g(x - e_j)`: `m` the mean of
    the half-sums `even_j`, `S = sum_j odd_j odd_j^T / h + sum_j (even_j - m)(even_j - m)^T / (h - 1)`, `odd_j` the
    half-differences. It keeps the part of the variance that a linearisation throws away, and needs no gradient.

    Validity: exact for linear models and normal noise as the draws grow; elsewhere as good as the margins are
    normal. The interval covers the sampling error (jackknife over groups of pairs), the quadrature error and the
    classes left out, not the normal model.

    Source: this library.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`.
        draws: noisy copies per point, even, at least 4.
        clip: clip noisy copies to the bounds.

    Raises:
        ParameterError: `sigma` is not a positive finite number, or `draws` is out of range.
    """

    draws: int = DRAWS

    name: ClassVar[str] = "moments"
    title: ClassVar[str] = "Moments"
    reference: ClassVar[str] = "brittle"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.draws < 4:
            raise ParameterError("draws", f"moments need at least 4 draws (two pairs); found {self.draws}")

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        sampled: Sampled = measured[self.needs[0]]
        moments = sampled.moments
        assert moments is not None
        status = mark(initial_status(sampled.tied), sampled.nonfinite > 0, Status.NONFINITE_LOGITS)
        variances = moments.covariance[:, 0].diagonal(dim1=1, dim2=2)
        status = mark(status, variances.amax(dim=1) <= 0, Status.NO_VARIATION)
        orthant = orthant_probability(moments.mean[:, 0], moments.covariance[:, 0])
        status = mark(status, orthant.value.isnan(), Status.INDEFINITE)
        status = mark(status, orthant.condition > ILL_CONDITIONED_ABOVE, Status.ILL_CONDITIONED)
        status = mark(status, torch.full_like(sampled.tied, sampled.left_out), Status.CLASSES_KEPT)
        rest = _odds_without_group(moments.mean[:, 1:], moments.covariance[:, 1:])
        low, high = sampling_interval(log_odds(orthant.complement, orthant.value), rest, confidence)
        left_out = special.ndtr(-moments.left_out_mean / moments.left_out_variance.sqrt().clamp_min(1e-300)).sum(dim=1)
        low = (low - orthant.error).clamp_min(0.0)
        high = (high + orthant.error + left_out).clamp_max(1.0)
        return finish(
            orthant.complement, low, high, status, sampled.passes, nonfinite_detail(sampled.nonfinite, sampled.draws)
        )


def _odds_without_group(mean: Tensor, covariance: Tensor) -> Tensor | None:
    """Log-odds of the estimates without one group of pairs each, `[B, G]`; None where none can be left out."""
    if mean.shape[1] < 2:
        return None
    orthant = orthant_probability(mean.flatten(0, 1), covariance.flatten(0, 1), tolerance=REPLICATE_TOLERANCE)
    return log_odds(orthant.complement, orthant.value).view(mean.shape[:2])
