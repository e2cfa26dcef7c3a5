"""Average-case robustness of the network linearised at the point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from brittle.estimate import Estimate
from brittle.measure import Linearize, Measurement
from brittle.scores.base import NoiseScore
from brittle.scores.linear import orthant_flips, sigmoid_flips
from brittle.scores.sound import Serves


@dataclass(frozen=True)
class _AtPoint(NoiseScore):
    classes: int | None = None

    cost: ClassVar[str] = "1 + C for all sigma together"

    @property
    def needs(self) -> tuple[Linearize]:
        """One Jacobian at the point, shared by every sigma."""
        return (Linearize(self.noise.shape, classes=self.classes),)


@dataclass(frozen=True)
class Taylor(_AtPoint):
    """Flip probability of the first-order Taylor model.

    `1 - P(g > 0)` with `g ~ N(g(x), sigma^2 D J K J^T D^T)`, `g_i = z_t - z_i`, `J` the Jacobian at the point.

    Validity: exact for linear models and normal noise. On real networks it can be useless away from small sigma. It has
    no interval: nothing is sampled, and the network's curvature is not known.

    Source: Han, Srinivas, Lakkaraju, Characterizing data point vulnerability via average-case robustness (UAI 2024),
    definition 2.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.

    Raises:
        ParameterError: `sigma` is not a positive finite number.
    """

    name: ClassVar[str] = "taylor"
    title: ClassVar[str] = "Taylor"
    reference: ClassVar[str] = "Han et al. (UAI 2024), definition 2"
    serves: ClassVar[Serves] = "all"
    explanation: ClassVar[str] = (
        "Replaces the model by its tangent at the point, for which the probability is known. Cheap; only as good as "
        "the tangent."
    )
    colour: ClassVar[int | None] = 5
    preference: ClassVar[float | None] = 5
    model: ClassVar[str | None] = "the linear model"

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The orthant probability of the linear model at the point."""
        return orthant_flips(measured[self.needs[0]], self.noise, confidence)


@dataclass(frozen=True)
class TaylorMVS(_AtPoint):
    """Flip probability of the first-order Taylor model with the multivariate sigmoid.

    `S / (1 + S)` with `S = sum_i exp(-g_i(x) / (sigma ||grad g_i(x)||))` in the place of the orthant probability.

    Validity: an approximation of `Taylor` without an integral; it ignores how the margins depend on each other. It has
    no interval, as that has none.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3.

    Attributes:
        sigma: standard deviation of the noise per coordinate, in pixel units.
        noise: the noise family, instead of `sigma`.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.

    Raises:
        ParameterError: `sigma` is not a positive finite number.
    """

    name: ClassVar[str] = "taylor_mvs"
    title: ClassVar[str] = "Taylor, multivariate sigmoid"
    reference: ClassVar[str] = "Han et al. (UAI 2024), section 3.2.3"
    serves: ClassVar[Serves] = "all"
    explanation: ClassVar[str] = "As taylor, with a logistic formula in place of the normal integral."
    colour: ClassVar[int | None] = 6
    preference: ClassVar[float | None] = 6
    model: ClassVar[str | None] = "the linear model"

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The multivariate sigmoid of the linear model at the point."""
        return sigmoid_flips(measured[self.needs[0]], self.noise, confidence)
