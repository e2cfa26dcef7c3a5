"""Variance and mean absolute change of the predicted probability, from its gradient at the point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from brittle.estimate import Estimate
from brittle.measure import Linearization, Linearize, Measurement
from brittle.noise import Noise, Sphere
from brittle.scores.base import NoiseScore, finish
from brittle.scores.evidence import no_interval
from brittle.scores.linear import derivatives, linear_detail, linear_status, margins
from brittle.scores.options import option
from brittle.scores.probability_change import PROBABILITY_CHANGE, check_statistic
from brittle.scores.sound import Serves

STATISTICS = ("variance", "absolute")
"""What is said of the change `dp`: `Var[dp]`, `E|dp|`. Its mean has no first order."""


@dataclass(frozen=True)
class FirstOrderChange(NoiseScore):
    """`Var[dp] = s^2 ||grad p_c||^2` or `E|dp| = s ||grad p_c|| sqrt(2 / pi)`, `p_c` the predicted probability.

    The norm is in the metric of the noise's covariance `s^2 K`. On the sphere of radius `r = s sqrt(n)` the absolute
    change is `r ||grad p_c|| Gamma(n/2) / (sqrt(pi) Gamma((n+1)/2))`. The gradient is `p_c sum_k p_k grad g_k` with the
    margins `g_k = z_c - z_k`, so its norm comes from the Gram matrix and costs no pass of its own.

    Validity: the variance is exact to second order in `s` for every noise; the absolute change to first order for
    normal and sphere noise, and for other families where the noise along the gradient is nearly normal, as it is in
    high dimensions. It has no interval: nothing is sampled, and the network's curvature is not known.

    Source: the moments of the linear term of Yang, Liu, Bilgic, The analysis of the expected change in the
    classification probability of the predicted label (TMLR 2023), equation 4.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        statistic: `variance` or `absolute`.
        noise: the noise family, instead of `sigma`.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.

    Raises:
        ParameterError: an unknown statistic, or `sigma` is not a positive finite number.
    """

    classes: int | None = None
    statistic: str = field(default="variance", kw_only=True, metadata=option(every=STATISTICS))

    name: ClassVar[str] = "first_order_change"
    title: ClassVar[str] = "First-order change"
    quantity: ClassVar[str] = PROBABILITY_CHANGE
    cost: ClassVar[str] = "1 + C"
    reference: ClassVar[str] = "Yang et al. (TMLR 2023), equation 4"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = "Variance and mean size of that change if the probability were its tangent."
    colour: ClassVar[int | None] = 18

    def __post_init__(self) -> None:
        super().__post_init__()
        check_statistic(self.statistic, STATISTICS)

    @property
    def needs(self) -> tuple[Linearize]:
        """One Jacobian at the point, for every sigma."""
        return (Linearize(self.noise.shape, classes=self.classes),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The moment of the tangent of the predicted probability."""
        linear: Linearization = measured[self.needs[0]]
        found = margins(linear)
        norm = derivatives(linear, found).gradient_norm
        size = self.noise.sigma if self.statistic == "variance" else absolute_moment(self.noise, linear.dimension)
        value = (size * norm).square() if self.statistic == "variance" else size * norm
        ends, detail = no_interval(value), linear_detail(linear, found)
        return finish(value, *ends, linear_status(linear, found), linear.passes, detail)


def absolute_moment(noise: Noise, dimension: int) -> float:
    """`E|u^T e|` of the noise `e` along a unit vector `u` in `dimension` coordinates, normal unless on a sphere."""
    if not isinstance(noise, Sphere):
        return noise.sigma * math.sqrt(2.0 / math.pi)
    gamma = math.exp(math.lgamma(dimension / 2.0) - math.lgamma((dimension + 1.0) / 2.0))
    return noise.sigma * math.sqrt(dimension / math.pi) * gamma
