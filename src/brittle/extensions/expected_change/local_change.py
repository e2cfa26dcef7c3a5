"""The change of the predicted probability from its derivatives at the point: moments of its tangent, and a bound."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Status
from brittle.extensions.expected_change.curvature import COLUMNS, Columns, HessianColumns, derivatives
from brittle.extensions.expected_change.probability_change import PROBABILITY_CHANGE
from brittle.intervals import student
from brittle.measure import Linearization, Linearize, Measurement
from brittle.measure.base import check_enough
from brittle.noise import Gaussian, Noise, Sphere
from brittle.scores.base import NoiseScore, clean_status, finish, mark
from brittle.scores.linear import margins
from brittle.scores.options import option

STATISTICS = ("variance", "absolute")  # statistics of the change `dp`: `Var[dp]`, `E|dp|`. Its mean has no first order.


@dataclass(frozen=True)
class FirstOrderChange(NoiseScore):
    """`Var[dp] = s^2 ||grad p_c||^2` or `E|dp| = s ||grad p_c|| sqrt(2 / pi)`, `p_c` the predicted probability.

    The norm is in the metric of the noise's covariance `s^2 K`. On the sphere of radius `r = s sqrt(n)` the absolute
    change is `r ||grad p_c|| Gamma(n/2) / (sqrt(pi) Gamma((n+1)/2))`. The gradient is `p_c sum_k p_k grad g_k` with the
    margins `g_k = z_c - z_k`, so its norm comes from the Gram matrix and costs no extra pass.

    Validity: the variance is exact to second order in `s` for every noise; the absolute change to first order for
    normal and sphere noise, and for other families if the noise along the gradient is nearly normal, as it is in
    high dimensions. It has no interval: it samples nothing, and the curvature of the network is unknown.

    Source: the moments of the linear term of Yang, Liu, Bilgic, The analysis of the expected change in the
    classification probability of the predicted label (TMLR 2023), equation 4.

    Attributes:
        statistic: `variance` or `absolute`.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.
    """

    classes: int | None = None
    statistic: str = field(default="variance", kw_only=True, metadata=option(choices=STATISTICS, variants=STATISTICS))

    name: ClassVar[str] = "first_order_change"
    title = "First-order change"
    quantity = PROBABILITY_CHANGE
    cost = "1 + C"
    reference = "Yang et al. (TMLR 2023), equation 4"
    serves = "probability"
    explanation = "Variance and mean size of that change if the probability were its tangent."
    colour = 18

    @property
    def needs(self) -> tuple[Linearize]:
        return (Linearize(self.noise.shape, classes=self.classes),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        linear: Linearization = measured[self.needs[0]]
        normal_margins = margins(linear)
        gradient = derivatives(linear, normal_margins)
        norm = gradient.probability * gradient.slope
        size = self.noise.sigma if self.statistic == "variance" else absolute_moment(self.noise, linear.dimension)
        value = (size * norm).square() if self.statistic == "variance" else size * norm
        unknown = torch.full_like(value, torch.nan)
        return finish(value, unknown, unknown, normal_margins.status, linear.passes, normal_margins.detail)


def absolute_moment(noise: Noise, dimension: int) -> float:
    """Return `E|u^T e|` for noise `e` along a unit vector `u` in `dimension` coordinates, normal unless on a sphere."""
    if not isinstance(noise, Sphere):
        return noise.sigma * math.sqrt(2.0 / math.pi)
    gamma = math.exp(math.lgamma(dimension / 2.0) - math.lgamma((dimension + 1.0) / 2.0))
    return noise.sigma * math.sqrt(dimension / math.pi) * gamma


@dataclass(frozen=True)
class ChangeBound(NoiseScore):
    """An upper bound on `E|dp|` of the second-order model `dp = e^T grad p_c + e^T H e / 2`.

    `a sum_i |dp_c / dx_i| + s^2 / pi sum_{i != j} |H_ij| + s^2 / 2 sum_i |H_ii|`, by the triangle inequality, with
    `E|e_i| = a`, `E|e_i e_j| = 2 s^2 / pi` and `E e_i^2 = s^2`. For normal noise `a = s sqrt(2 / pi)`; on the sphere of
    radius `r = s sqrt(n)` it is `r Gamma(n/2) / (sqrt(pi) Gamma((n+1)/2))`, and the other two factors are
    `r^2 / (n pi)` and `r^2 / (2 n)`. The paper prints `r^2 / (n pi^2)` and the Laplacian itself, without absolute
    values, in the last term; that formula is no bound.

    Validity: bounds the second-order model, not the network at a distance. For inputs of more than `columns`
    coordinates the sums over the Hessian are estimated from `columns` columns, with a Student interval that is right if
    many coordinates carry the curvature and too low if few do, which random columns miss; take all columns to be sure.
    In single precision gradients vanish where `1 - p_c` is below about 1e-38, and the status is then `zero_gradient`.
    The bound is far from tight if the gradient spreads over many coordinates; `FirstOrderChange` and
    `ProbabilityChange` estimate the size of the change.

    Source: Yang, Liu, Bilgic, The analysis of the expected change in the classification probability of the predicted
    label (TMLR 2023), equation 7, corrected.

    Attributes:
        noise: `Gaussian` or `Sphere`, instead of `sigma`.
        columns: columns of the Hessian, one backward pass each.

    Raises:
        ParameterError: another noise family, `sigma` is not a positive finite number, or fewer than 2 columns.
    """

    columns: int = COLUMNS

    name: ClassVar[str] = "change_bound"
    title = "Bound on the mean absolute change"
    quantity = PROBABILITY_CHANGE
    cost = "3 + columns"
    reference = "Yang et al. (TMLR 2023), equation 7, corrected"
    serves = "probability"
    explanation = "An upper bound on the mean size of that change, for the second-order model of the probability."
    colour = 19

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.noise, Gaussian | Sphere):
            raise ParameterError(
                f"{self.name} supports gaussian and sphere noise; found {self.noise.name}: leave the score out"
            )
        check_enough("columns", self.columns)

    @property
    def needs(self) -> tuple[HessianColumns]:
        return (HessianColumns(self.columns),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        columns: Columns = measured[self.needs[0]]
        sigma, size, count = self.noise.sigma, columns.dimension, columns.diagonal.shape[1]
        # The term of each column: s^2 / pi sum_{j != i} |H_ij| + s^2 / 2 |H_ii|.
        terms = sigma**2 * (columns.beside / math.pi + columns.diagonal / 2.0)
        value = absolute_moment(self.noise, size) * columns.slope + size * terms.mean(dim=1)
        error = size * terms.std(dim=1) * math.sqrt((1.0 - count / size) / count) if count < size else 0.0 * value
        half = student(count, confidence) * error
        finite = columns.slope.isfinite() & terms.isfinite().all(dim=1)
        status = mark(clean_status(columns.clean), ~finite, Status.NONFINITE_GRADIENT)
        status = mark(status, (columns.slope == 0) & (terms == 0).all(dim=1), Status.ZERO_GRADIENT)
        detail = (None if count == size else f"estimated from {count} of {size} columns of the Hessian",) * len(value)
        return finish(value, (value - half).clamp_min(0.0), value + half, status, columns.passes, detail)
