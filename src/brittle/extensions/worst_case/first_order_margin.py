"""The distance to the decision boundary of the network linearised at the point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from brittle.estimate import DISTANCES, DUAL_ORDER, Estimate, check_norm
from brittle.measure import Linearization, Linearize, Measurement
from brittle.scores.base import Score, finish
from brittle.scores.options import option
from brittle.scores.taylor import margins


@dataclass(frozen=True)
class FirstOrderMargin(Score):
    """Distance to the nearest boundary of the first-order Taylor model, `min_i g_i / ||grad g_i||_q`.

    `q` is the dual of the norm: 2 for L2, 1 for Linf, infinity for L1. In pixel units. A margin without a gradient
    is no boundary, unless it is 0: then the distance is 0.

    Validity: exact for linear models; elsewhere neither an upper nor a lower bound. The interval has no width, unless
    competitors are left out: its lower end then gives them the largest gradient norm of the others.

    Source: Moosavi-Dezfooli, Fawzi, Frossard, DeepFool (CVPR 2016), one step.

    Attributes:
        norm: norm of the distance, `l2`, `linf` or `l1`.
        classes: competing classes to keep; by default all up to 100 classes, the 20 nearest by logit above.
    """

    norm: str = field(default="l2", metadata=option(choices=DISTANCES))
    classes: int | None = None

    name: ClassVar[str] = "first_order_margin"
    title = "First-order margin"
    quantity = "distance"
    cost = "1 + C"
    reference = "Moosavi-Dezfooli et al. (CVPR 2016)"
    serves = "all"
    explanation = "The distance to the nearest decision boundary if the model were its tangent."
    safer = "higher"
    colour = 9

    def __post_init__(self) -> None:
        check_norm(self.norm)

    @property
    def needs(self) -> tuple[Linearize]:
        return (Linearize(classes=self.classes, order=None if self.norm == "l2" else DUAL_ORDER[self.norm]),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        linear: Linearization = measured[self.needs[0]]
        normal_margins = margins(linear)
        norms = normal_margins.covariance.diagonal(dim1=1, dim2=2).clamp_min(0.0).sqrt()
        if linear.lengths is not None:
            norms = torch.where(norms > 0, linear.lengths, 0.0)
        flat = torch.where(normal_margins.mean > 0, torch.inf, 0.0)
        distance = torch.where(norms > 0, normal_margins.mean / norms, flat).amin(dim=1)
        farther = normal_margins.left_out.amin(dim=1) / norms.amax(dim=1)
        low = torch.minimum(distance, farther)
        return finish(distance, low, distance, normal_margins.status, linear.passes, normal_margins.detail)
