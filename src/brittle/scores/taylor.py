"""The network linearised at the point: average-case robustness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from brittle.estimate import Estimate
from brittle.measure import Linearize, Measurement
from brittle.scores.base import NoiseScore
from brittle.scores.linear import orthant_flips


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
