"""An upper bound on the mean absolute change of the predicted probability, from first and second derivatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import Estimate, Status
from brittle.intervals import student
from brittle.measure import Columns, HessianColumns, Measurement
from brittle.measure.base import check_enough
from brittle.measure.curvature import COLUMNS
from brittle.noise import Gaussian, Sphere
from brittle.scores.base import NoiseScore, clean_status, finish, mark
from brittle.scores.first_order_change import absolute_moment
from brittle.scores.probability_change import PROBABILITY_CHANGE
from brittle.scores.sound import Serves


@dataclass(frozen=True)
class ChangeBound(NoiseScore):
    """An upper bound on `E|dp|` of the second-order model `dp = e^T grad p_c + e^T H e / 2`.

    `a sum_i |dp_c / dx_i| + s^2 / pi sum_{i != j} |H_ij| + s^2 / 2 sum_i |H_ii|`, by the triangle inequality, with
    `E|e_i| = a`, `E|e_i e_j| = 2 s^2 / pi` and `E e_i^2 = s^2`. For normal noise `a = s sqrt(2 / pi)`; on the sphere of
    radius `r = s sqrt(n)` it is `r Gamma(n/2) / (sqrt(pi) Gamma((n+1)/2))`, and the other two factors are
    `r^2 / (n pi)` and `r^2 / (2 n)`. The paper prints `r^2 / (n pi^2)` and the Laplacian itself, without absolute
    values, in the last term; with these it is no bound.

    Validity: bounds the second-order model, not the network at a distance. Inputs of more than `columns` coordinates
    have the sums over the Hessian estimated from that many columns, with a Student interval that is right where many
    coordinates carry the curvature and too low where few do, which random columns miss; take all columns to be sure. In
    single precision gradients vanish where `1 - p_c` is below about 1e-38, and the status says so. It is far from tight
    where the gradient spreads over many coordinates; `FirstOrderChange` and `ProbabilityChange` say how large the
    change is.

    Source: Yang, Liu, Bilgic, The analysis of the expected change in the classification probability of the predicted
    label (TMLR 2023), equation 7, corrected.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: `Gaussian` or `Sphere`, instead of `sigma`.
        columns: columns of the Hessian, one backward pass each.

    Raises:
        ParameterError: another noise family, `sigma` is not a positive finite number, or fewer than 2 columns.
    """

    columns: int = COLUMNS

    name: ClassVar[str] = "change_bound"
    title: ClassVar[str] = "Bound on the mean absolute change"
    quantity: ClassVar[str] = PROBABILITY_CHANGE
    cost: ClassVar[str] = "3 + columns"
    reference: ClassVar[str] = "Yang et al. (TMLR 2023), equation 7, corrected"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = (
        "An upper bound on the mean size of that change, for the second-order model of the probability."
    )
    colour: ClassVar[int | None] = 19

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.noise, Gaussian | Sphere):
            raise ParameterError(
                f"{self.name} knows gaussian and sphere noise; found {self.noise.name}: leave the score out"
            )
        check_enough("columns", self.columns)

    @property
    def needs(self) -> tuple[HessianColumns]:
        """Columns of the Hessian, for every sigma."""
        return (HessianColumns(self.columns),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The bound from the gradient and the measured columns of the Hessian."""
        found: Columns = measured[self.needs[0]]
        sigma, size, count = self.noise.sigma, found.dimension, found.diagonal.shape[1]
        terms = second_order_terms(sigma, found.diagonal, found.beside)
        value = absolute_moment(self.noise, size) * found.slope + size * terms.mean(dim=1)
        error = size * terms.std(dim=1) * math.sqrt((1.0 - count / size) / count) if count < size else 0.0 * value
        half = student(count, confidence) * error
        finite = found.slope.isfinite() & terms.isfinite().all(dim=1)
        status = mark(clean_status(found.clean), ~finite, Status.NONFINITE_GRADIENT)
        status = mark(status, (found.slope == 0) & (terms == 0).all(dim=1), Status.ZERO_GRADIENT)
        remark = None if count == size else f"estimated from {count} of {size} columns of the Hessian"
        return finish(value, (value - half).clamp_min(0.0), value + half, status, found.passes, (remark,) * len(value))


def second_order_terms(sigma: float, diagonal: Tensor, beside: Tensor) -> Tensor:
    """What each column `i` adds: `s^2 / pi sum_{j != i} |H_ij| + s^2 / 2 |H_ii|`, of the shape of its arguments."""
    return sigma**2 * (beside / math.pi + diagonal / 2.0)


def bound(sigma: float, first_moment: float, gradient: Tensor, hessian: Tensor) -> Tensor:
    """The bound from the whole gradient `[..., n]` and Hessian `[..., n, n]`, `[...]`.

    Args:
        sigma: standard deviation of the noise per coordinate.
        first_moment: `E|e_i|` of a coordinate of the noise.
        gradient: of the function.
        hessian: of the function.
    """
    diagonal = hessian.diagonal(dim1=-2, dim2=-1).abs()
    beside = hessian.abs().sum(dim=-1) - diagonal
    return first_moment * gradient.abs().sum(dim=-1) + second_order_terms(sigma, diagonal, beside).sum(dim=-1)
