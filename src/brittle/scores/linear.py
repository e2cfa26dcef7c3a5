"""What the linear scores share: margins of a linearisation, that all stay positive, derivatives of the probability."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Status
from brittle.measure import Linearization
from brittle.measure.linearization import last
from brittle.noise import Noise
from brittle.orthant import ILL_CONDITIONED_ABOVE, orthant_probability, without_rounding
from brittle.scores.base import copies_detail, initial_status, mark
from brittle.scores.evidence import conclude, without_copies

LARGEST_EXPONENT = 700.0
"""Largest argument of `exp` that is used, so that it is finite: a class that is less likely by more has the
probability 0."""


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
    found = margins(linear)
    orthant = orthant_probability(found.mean, found.covariance * noise.sigma**2)
    status = mark(found.status, orthant.complement.isnan(), Status.INDEFINITE)
    status = mark(status, orthant.condition > ILL_CONDITIONED_ABOVE, Status.ILL_CONDITIONED)
    return _flips(orthant.complement, status, linear, found, confidence)


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
    return _flips(torch.sigmoid(odds), found.status, linear, found, confidence)


def _flips(value: Tensor, status: Tensor, linear: Linearization, found: Margins, confidence: float) -> Estimate:
    if linear.votes is None:
        return without_copies(value, status, linear.passes, found.detail)
    return conclude(value, status, found.detail, linear.passes, linear.votes, confidence)


@dataclass(frozen=True)
class ProbabilityDerivatives:
    """First and second derivatives of the softmax probability `p_t` of the class that the margins are of.

    With the margins `g_k = z_t - z_k` and `m = sum_k p_k grad g_k`: `grad p_t = p_t m`, and for logits that are linear
    in the input `lap p_t = p_t (2 ||m||^2 - sum_k p_k ||grad g_k||^2)`. Competitors that were not kept are given the
    largest kept gradient norm. `doubt` is `1 - p_t` at full relative precision; `slope` is `||m||`, in the metric of
    the noise where the Gram is; `curvature` is `2 ||m||^2 - sum_k p_k ||grad g_k||^2`, and between the other two given
    those competitors. Each is `[B]`, float64.
    """

    probability: Tensor
    doubt: Tensor
    slope: Tensor
    curvature: Tensor
    curvature_low: Tensor
    curvature_high: Tensor


def derivatives(linear: Linearization, found: Margins) -> ProbabilityDerivatives:
    """The derivatives of `p_t` at a linearisation, from its margins `found`."""
    own = linear.logits.gather(1, linear.predicted[:, None])
    probability = linear.logits.softmax(dim=1).gather(1, linear.predicted[:, None])[:, 0]
    others = probability[:, None] * (-found.mean).clamp_max(LARGEST_EXPONENT).exp()
    rest = (own - linear.logits).neg().exp().where(found.left_out.isfinite(), 0.0).sum(dim=1) * probability
    squares = found.covariance.diagonal(dim1=1, dim2=2).clamp_min(0.0)
    slope = torch.einsum("bk,bkl,bl->b", others, found.covariance, others).clamp_min(0.0).sqrt()
    second = (others * squares).sum(dim=1)
    steepest = squares.amax(dim=1).sqrt()
    error = rest * steepest
    return ProbabilityDerivatives(
        probability=probability,
        doubt=others.sum(dim=1) + rest,
        slope=slope,
        curvature=2.0 * slope.square() - second,
        curvature_low=2.0 * (slope - error).clamp_min(0.0).square() - second - error * steepest,
        curvature_high=2.0 * (slope + error).square() - second,
    )
