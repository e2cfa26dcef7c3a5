"""Margins of a linearisation, and the probability that all stay positive."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.estimate import Estimate, Status
from brittle.measure import Linearization
from brittle.measure.linearization import last
from brittle.noise import Noise
from brittle.orthant import ILL_CONDITIONED_ABOVE, orthant_probability, without_rounding
from brittle.scores.base import copies_detail, initial_status, mark
from brittle.scores.evidence import conclude, without_copies


@dataclass(frozen=True)
class Margins:
    """Decision margins `g_i = z_t - z_i` of a linear model at `sigma = 1`; `t` is the predicted class or another.

    The mean is `[B, K]`; the diagonal of the covariance, `[B, K, K]`, holds the squared gradient norms. `left_out`,
    `[B, C]`, are the margins of competitors that were not kept; infinite elsewhere.
    """

    mean: Tensor
    covariance: Tensor
    left_out: Tensor
    status: Tensor
    detail: tuple[str | None, ...]


def margins(linear: Linearization) -> Margins:
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

    broken = (~linear.gram.isfinite()).sum(dim=(1, 2))
    flat = covariance.diagonal(dim1=1, dim2=2).amax(dim=1) <= 0
    status = initial_status(linear.tied, ~linear.logits.isfinite().all(dim=1))
    status = mark(status, broken > 0, Status.NONFINITE_GRADIENT)
    status = mark(status, flat, Status.ZERO_GRADIENT)
    fewer = linear.classes.shape[1] < linear.logits.shape[1]
    status = mark(status, torch.full_like(linear.tied, fewer), Status.CLASSES_KEPT)
    size, count = linear.gram[0].numel(), mean.shape[-1]
    texts = copies_detail(linear.nonfinite, linear.draws)
    detail = tuple(
        text
        or (f"{entries} of {size} entries of the Gram matrix are NaN or infinite" if entries else None)
        or (f"the gradients of all {count} margins are 0; shrinkage and monte_carlo need none" if none else None)
        for text, entries, none in zip(texts, broken.tolist(), flat.tolist(), strict=True)
    )
    return Margins(mean, covariance, left_out, status, detail)


def orthant_flips(linear: Linearization, noise: Noise, confidence: float) -> Estimate:
    """Probability that a margin of the linear model turns negative: `1 - P(g > 0)`, `g ~ N(D z, s^2 D G D^T)`. Where
    noisy copies were averaged the interval is that of counting them, elsewhere there is none."""
    linear_margins = margins(linear)
    orthant = orthant_probability(linear_margins.mean, linear_margins.covariance * noise.sigma**2)
    status = mark(linear_margins.status, orthant.complement.isnan(), Status.INDEFINITE)
    status = mark(status, orthant.condition > ILL_CONDITIONED_ABOVE, Status.ILL_CONDITIONED)
    return conclude_flips(orthant.complement, status, linear, linear_margins, confidence)


def conclude_flips(
    value: Tensor, status: Tensor, linear: Linearization, linear_margins: Margins, confidence: float
) -> Estimate:
    """Make the estimate of flip probabilities; the interval is that of counting, where noisy copies were averaged."""
    if linear.votes is None:
        return without_copies(value, status, linear.passes, linear_margins.detail)
    return conclude(value, status, linear_margins.detail, linear.passes, linear.votes, confidence)
