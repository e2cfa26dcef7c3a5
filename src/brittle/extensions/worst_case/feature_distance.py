"""The distance that the features move on the way to the nearest input with another prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from brittle.estimate import Estimate, check_norm
from brittle.measure import Clean, Forward, Measurement, Nearest, NearestPoint
from brittle.scores.base import finish
from brittle.scores.input_margin import SearchedScore, nearest_status


@dataclass(frozen=True)
class FeatureDistance(SearchedScore):
    """`||h(x') - h(x)||_p`, `x'` the input that `InputMargin` found, `h` the features; in units of the features.

    If it is a fixed multiple of the input margin, the features keep distances (an isometry up to scale), and margins
    among features are then consistent with margins among inputs.

    Validity: exact for the input `x'`, with an interval of no width; that input need not be the nearest.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.2, figure 6.

    Attributes:
        norm: norm of both distances, `l2`, `linf` or `l1`.
        attack: as for `InputMargin`.
        effort: as for `InputMargin`.
        bounded: as for `InputMargin`.
    """

    name: ClassVar[str] = "feature_distance"
    title = "Feature distance"
    quantity = "feature_distance"
    cost = "1 + that of input_margin"
    reference = "Ngnawé et al. (NeurIPS 2024), section 3.2"
    explanation = (
        "How far the features move on the way to the nearest input found with another prediction; a fixed multiple of "
        "the input margin where features keep distances."
    )

    def __post_init__(self) -> None:
        check_norm(self.norm)
        super().__post_init__()

    @property
    def needs(self) -> tuple[Forward, Nearest]:
        return (Forward(), Nearest(self.norm, self.attack, self.effort, self.bounded, observe=True))

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        clean: Clean = measured[Forward()]
        nearest: NearestPoint = measured[self.needs[1]]
        assert nearest.feature_distance is not None
        missing = nearest.predicted < 0
        distance = nearest.feature_distance.double().masked_fill(missing & clean.tied, 0.0)
        distance = distance.masked_fill(missing & ~clean.tied, float("inf"))
        return finish(distance, distance, distance, nearest_status(clean, nearest), nearest.passes)
