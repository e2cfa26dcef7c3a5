"""The network linearised at the point: its margins, and the probability that all stay positive."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from brittle.estimate import Estimate, Status
from brittle.measure import Linearization, Linearize, Measurement
from brittle.measure.linearize import last
from brittle.noise import Noise
from brittle.orthant import ILL_CONDITIONED_ABOVE, orthant_probability, without_rounding
from brittle.scores.base import NoiseScore, copies_detail, initial_status, mark
from brittle.scores.evidence import conclude, without_copies


@dataclass(frozen=True)
class TangentScore(NoiseScore):
    classes: int | None = None

    cost = "1 + C for all sigma together"
    serves = "all"
    model = "the linear model"

    @property
    def needs(self) -> tuple[Linearize]:
        return (Linearize(self.noise.shape, classes=self.classes),)


@dataclass(frozen=True)
class Taylor(TangentScore):
    """Flip probability of the first-order Taylor model.

    `1 - P(g > 0)` with `g ~ N(g(x), sigma^2 D J K J^T D^T)`, `g_i = z_t - z_i`, `J` the Jacobian at the point.

    Validity: exact for linear models and normal noise. On real networks it can be useless away from small sigma. It has
    no interval: nothing is sampled, and the network's curvature is not known.

    Source: Han et al., Characterizing data point vulnerability via average-case robustness (UAI 2024), definition 2.

    Attributes:
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.
    """

    name: ClassVar[str] = "taylor"
    title = "Taylor"
    reference = "Han et al. (UAI 2024), definition 2"
    explanation = (
        "Replaces the model by its tangent at the point, for which the probability is known. Cheap; only as good as "
        "the tangent."
    )
    colour = 5
    preference = 5

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        return orthant_flips(measured[self.needs[0]], self.noise, confidence)


@dataclass(frozen=True)
class Margins:
    """Decision margins `g_i = z_t - z_i` of a linear model at `sigma = 1`; `t` is the predicted class or another."""

    mean: Tensor  # `[B, K]`
    covariance: Tensor  # `[B, K, K]`; its diagonal holds the squared gradient norms
    left_out: Tensor  # margins of competitors that were not kept, `[B, C]`; infinite elsewhere
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
    if linear.votes is None:
        return without_copies(value, status, linear.passes, linear_margins.detail)
    return conclude(value, status, linear_margins.detail, linear.passes, linear.votes, confidence)
