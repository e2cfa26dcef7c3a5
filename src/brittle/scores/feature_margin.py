"""The distance to the decision boundary in the space of the features, in one forward pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from brittle.estimate import Status
from brittle.norms import DISTANCES, DUAL_ORDER, check_norm
from brittle.scores.base import mark
from brittle.scores.one_pass import OnePass, OnePassScore
from brittle.scores.options import option


@dataclass(frozen=True)
class FeatureMargin(OnePassScore):
    """`min_{j != t} (z_t - z_j) / ||w_t - w_j||_q`, `w` the rows of the last linear layer, `q` the dual of the norm.

    In units of the features; 0 at a tie.

    Validity: the exact distance, in the space of the features, to the nearest feature vector with another prediction;
    no such vector need belong to an input. The interval has no width. A class whose row equals that of the predicted
    one is no boundary, unless their logits are equal.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 2.3.

    Attributes:
        norm: of the distance between features, `l2`, `linf` or `l1`.

    Raises:
        ParameterError: an unknown norm.
    """

    norm: str = field(default="l2", metadata=option(choices=DISTANCES, several=True))

    name: ClassVar[str] = "feature_margin"
    title: ClassVar[str] = "Feature margin"
    quantity: ClassVar[str] = "feature_distance"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 2.3"
    explanation: ClassVar[str] = "The distance to the nearest decision boundary of the last layer, among its features."
    colour: ClassVar[int | None] = 10
    uses_features: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_norm(self.norm)

    def value(self, found: OnePass) -> Tensor:
        """The margin in the space of the features; infinite where no other class can be reached by changing them."""
        return feature_margin(found.logits, found.features_and_weight[1], self.norm)

    def judge(self, status: Tensor, value: Tensor) -> Tensor:
        """A point from which no other class can be reached has no gradient."""
        return mark(status, value.isinf(), Status.ZERO_GRADIENT)


def feature_margin(logits: Tensor, weight: Tensor, norm: str) -> Tensor:
    """The score of `FeatureMargin` for `logits` `[B, C]` and a head of `weight` `[C, d]`: `[B]`, float64.

    Infinite where no other class can be reached by changing the features.
    """
    exact, rows = logits.double(), weight.double()
    predicted = exact.argmax(dim=1)
    gaps = exact.gather(1, predicted[:, None]) - exact
    lengths = torch.cdist(rows, rows, p=float(DUAL_ORDER[norm]), compute_mode="donot_use_mm_for_euclid_dist")[predicted]
    unreachable = torch.where(gaps > 0, torch.inf, 0.0)
    distances = torch.where(lengths > 0, gaps / lengths, unreachable)
    return distances.scatter(1, predicted[:, None], torch.inf).amin(dim=1)
