"""What the linear scores share: margins of a linearisation, and the probability that all stay positive."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.estimate import Estimate, Status
from brittle.measure import Linearization
from brittle.measure.linearization import last
from brittle.noise import Noise
from brittle.orthant import ILL_CONDITIONED_ABOVE, orthant_probability, without_rounding
from brittle.scores.base import initial_status, mark, nonfinite_detail
from brittle.scores.evidence import conclude


@dataclass(frozen=True)
class Margins:
    """Decision margins `g_i = z_t - z_i` of a linear model at `sigma = 1`.

    Attributes:
        mean: `[B, K]`.
        covariance: `[B, K, K]`; its diagonal holds the squared gradient norms of the margins.
        left_out: margins of the competitors that were not kept, `[B, C]`; infinite elsewhere.
    """

    mean: Tensor
    covariance: Tensor
    left_out: Tensor


def margins(linear: Linearization) -> Margins:
    """Margins of a linearisation."""
    order = last(linear.classes, linear.predicted)
    chosen = linear.logits.gather(1, linear.classes).gather(1, order)
    square = linear.gram.gather(1, order[..., None].expand_as(linear.gram))
    square = square.gather(2, order[:, None].expand_as(square))
    mean = chosen[..., -1:] - chosen[..., :-1]
    to_own = square[..., :-1, -1]
    covariance = square[..., -1:, -1:] - to_own[..., :, None] - to_own[..., None, :] + square[..., :-1, :-1]
    diagonal = square.diagonal(dim1=-2, dim2=-1)
    covariance = without_rounding((covariance + covariance.mT) / 2, diagonal[..., -1:] + diagonal[..., :-1])
    left_out = (chosen[..., -1:] - linear.logits).scatter(1, linear.classes, torch.inf)
    return Margins(mean, covariance, left_out)


def linear_status(linear: Linearization, found: Margins) -> Tensor:
    """How the linearisation of each point went, `[B]`."""
    status = initial_status(linear.tied)
    status = mark(status, ~linear.logits.isfinite().all(dim=1), Status.NONFINITE_LOGITS)
    status = mark(status, ~linear.gram.isfinite().all(dim=(1, 2)), Status.NONFINITE_GRADIENT)
    status = mark(status, found.covariance.diagonal(dim1=1, dim2=2).amax(dim=1) <= 0, Status.ZERO_GRADIENT)
    left_out = torch.full_like(linear.tied, linear.classes.shape[1] < linear.logits.shape[1])
    return mark(status, left_out, Status.CLASSES_KEPT)


def linear_detail(linear: Linearization, found: Margins) -> tuple[str | None, ...]:
    """What was found at each point whose linearisation failed, `[B]`."""
    broken = (~linear.gram.isfinite()).sum(dim=(1, 2)).tolist()
    flat = (found.covariance.diagonal(dim1=1, dim2=2).amax(dim=1) <= 0).tolist()
    size, margins_count = linear.gram[0].numel(), found.mean.shape[-1]
    return tuple(
        text
        or (f"{count} of {size} entries of the Gram matrix are NaN or infinite" if count else None)
        or (
            f"the gradients of all {margins_count} margins are 0; shrinkage and monte_carlo need none" if none else None
        )
        for text, count, none in zip(nonfinite_detail(linear.nonfinite, linear.draws), broken, flat, strict=True)
    )


def orthant_flips(linear: Linearization, noise: Noise, confidence: float) -> Estimate:
    """Probability that a margin of the linear model turns negative: `1 - P(g > 0)`, `g ~ N(D z, s^2 D G D^T)`.

    Where noisy copies were averaged the interval is that of counting them, elsewhere there is none.
    """
    found = margins(linear)
    orthant = orthant_probability(found.mean, found.covariance * noise.sigma**2)
    flips = orthant.complement
    status = mark(linear_status(linear, found), flips.isnan(), Status.INDEFINITE)
    status = mark(status, orthant.condition > ILL_CONDITIONED_ABOVE, Status.ILL_CONDITIONED)
    return conclude(flips, status, linear_detail(linear, found), linear.passes, linear.votes, confidence)


def sigmoid_flips(linear: Linearization, noise: Noise, confidence: float) -> Estimate:
    """One minus the multivariate sigmoid: `S / (1 + S)`, `S = sum_i exp(-g_i / (s ||grad g_i||))`; else the same."""
    found = margins(linear)
    norms = found.covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0).sqrt()
    ratios = found.mean / (noise.sigma * norms)
    odds = torch.logsumexp(-ratios.nan_to_num(nan=0.0, posinf=torch.inf, neginf=-torch.inf), dim=-1).clamp(-1e4, 1e4)
    status, detail = linear_status(linear, found), linear_detail(linear, found)
    return conclude(torch.sigmoid(odds), status, detail, linear.passes, linear.votes, confidence)
