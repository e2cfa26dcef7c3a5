"""Derivatives of a class's probability in terms of margins: what the Jacobian of the logits says of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.measure import Linearization
from brittle.scores.linear import Margins


@dataclass(frozen=True)
class ProbabilityDerivatives:
    """First and second derivatives of the softmax probability `p_t` of the predicted class.

    With the margins `g_k = z_t - z_k` and `m = sum_k p_k grad g_k`: `grad p_t = p_t m`, and for logits that are linear
    in the input `lap p_t = p_t (2 ||m||^2 - sum_k p_k ||grad g_k||^2)`. Competitors that were not kept are given the
    largest kept gradient norm.

    Attributes:
        probability: `p_t`, `[B]`, float64.
        doubt: `1 - p_t`, at full relative precision, `[B]`.
        slope: `||m||`, `[B]`; in the metric of the noise where the Gram is.
        curvature: `2 ||m||^2 - sum_k p_k ||grad g_k||^2`, `[B]`.
        curvature_low: what it is at least, given those competitors, `[B]`.
        curvature_high: and at most, `[B]`.
    """

    probability: Tensor
    doubt: Tensor
    slope: Tensor
    curvature: Tensor
    curvature_low: Tensor
    curvature_high: Tensor

    @property
    def gradient_norm(self) -> Tensor:
        """`||grad p_t||`, `[B]`."""
        return self.probability * self.slope

    @property
    def laplacian(self) -> tuple[Tensor, Tensor, Tensor]:
        """`lap p_t` for logits that are linear in the input, with what it is at least and at most, `[B]` each."""
        return tuple(self.probability * part for part in (self.curvature, self.curvature_low, self.curvature_high))  # type: ignore[return-value]


def derivatives(linear: Linearization, found: Margins) -> ProbabilityDerivatives:
    """The derivatives of `p_t` at a linearisation, from its margins `found`."""
    own = linear.logits.gather(1, linear.predicted[:, None])
    probability = linear.logits.softmax(dim=1).gather(1, linear.predicted[:, None])[:, 0]
    others = probability[:, None] * (-found.mean).exp()
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


def laplacians(linear: Linearization) -> Tensor:
    """`lap p_c` of every kept class for logits that are linear in the input, `[B, M]`; they sum to 0 over all classes.

    `p_c (a^T G a - sum_k p_k G_kk + p^T G p)` with `a = e_c - p` and the Gram `G`, taken relative to the predicted
    class, so that nothing is lost where its probability is near 1.
    """
    at = (linear.classes == linear.predicted[:, None]).int().argmax(dim=1)
    to_own = linear.gram.gather(1, at[:, None, None].expand(-1, 1, linear.gram.shape[2]))[:, 0]
    own = to_own.gather(1, at[:, None])
    gram = linear.gram - to_own[:, :, None] - to_own[:, None, :] + own[:, :, None]
    p = linear.logits.softmax(dim=1).gather(1, linear.classes)
    across = torch.einsum("bkl,bl->bk", gram, p)
    mean = (p * across).sum(dim=1, keepdim=True)
    diagonal = gram.diagonal(dim1=1, dim2=2)
    return p * (diagonal - 2.0 * across + 2.0 * mean - (p * diagonal).sum(dim=1, keepdim=True))
