"""The first-order Taylor model with the multivariate sigmoid in place of the orthant probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from brittle.errors import ParameterError
from brittle.estimate import Estimate
from brittle.measure import Linearization, Measurement
from brittle.noise import Noise
from brittle.scores.linear import conclude_flips, margins
from brittle.scores.taylor import TangentScore


@dataclass(frozen=True)
class TaylorMVS(TangentScore):
    """Flip probability of the first-order Taylor model with the multivariate sigmoid.

    `S / (1 + S)` with `S = sum_i exp(-f g_i(x) / (sigma ||grad g_i(x)||))` in the place of the orthant probability,
    `f` the factor.

    Validity: an approximation of `Taylor` without an integral; it ignores the dependence between the margins. With
    `f = 1.702` and two classes it is within 0.01 of `Taylor`; with 1 it is the paper's formula. It has no interval.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3.

    Attributes:
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.
        factor: multiplies the margins in their standard deviations.
    """

    factor: float = 1.0

    name: ClassVar[str] = "taylor_mvs"
    title = "Taylor, multivariate sigmoid"
    reference = "Han et al. (UAI 2024), section 3.2.3"
    explanation = "As taylor, with a logistic formula in place of the normal integral."
    colour = 6
    preference = 6
    unsaid = ("factor",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_factor(self.factor)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        return sigmoid_flips(measured[self.needs[0]], self.noise, self.factor, confidence)


def check_factor(factor: float) -> None:
    """Raise unless `factor` can multiply the ratios of the multivariate sigmoid."""
    if not 0 < factor < torch.inf:
        raise ParameterError(f"factor must be positive and finite; found {factor}")


def sigmoid_flips(linear: Linearization, noise: Noise, factor: float, confidence: float) -> Estimate:
    """Return one minus the multivariate sigmoid: `S / (1 + S)`, `S = sum_i exp(-f g_i / (s ||grad g_i||))`."""
    normal_margins = margins(linear)
    norms = normal_margins.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
    ratios = factor * normal_margins.mean / (noise.sigma * norms)
    odds = torch.logsumexp(-ratios.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf), dim=-1).clamp(-1e4, 1e4)
    return conclude_flips(torch.sigmoid(odds), normal_margins.status, linear, normal_margins, confidence)
