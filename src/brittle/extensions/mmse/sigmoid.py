"""The multivariate sigmoid in place of the orthant probability."""

from __future__ import annotations

import torch

from brittle.errors import ParameterError
from brittle.estimate import Estimate
from brittle.measure import Linearization
from brittle.noise import Noise
from brittle.scores.linear import conclude_flips, margins


def check_factor(factor: float) -> None:
    """Raise unless `factor` can multiply the ratios of the multivariate sigmoid."""
    if not 0 < factor < torch.inf:
        raise ParameterError(f"factor must be positive and finite; found {factor}")


def sigmoid_flips(linear: Linearization, noise: Noise, factor: float, confidence: float) -> Estimate:
    """One minus the multivariate sigmoid: `S / (1 + S)`, `S = sum_i exp(-f g_i / (s ||grad g_i||))`; else the same."""
    found = margins(linear)
    norms = found.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
    ratios = factor * found.mean / (noise.sigma * norms)
    odds = torch.logsumexp(-ratios.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf), dim=-1).clamp(-1e4, 1e4)
    return conclude_flips(torch.sigmoid(odds), found.status, linear, found, confidence)
