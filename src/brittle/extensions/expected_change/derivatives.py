"""Derivatives of the predicted probability, from a linearisation of the logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure import Linearization
from brittle.scores.linear import Margins

LARGEST_EXPONENT = 700.0
"""Largest argument of `exp` that is used, so that it is finite: a class that is less likely by more has the
probability 0."""


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
