"""How far the features move on the way to the nearest input with another prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from brittle.estimate import Estimate, Parameters
from brittle.measure import Clean, Forward, Measurement, Nearest, NearestPoint
from brittle.measure.nearest import ATTACKS, EFFORTS
from brittle.measure.nearest.nearest import check_search
from brittle.norms import DISTANCES, check_norm
from brittle.scores.base import Score, finish
from brittle.scores.input_margin import InputMargin, nearest_status
from brittle.scores.options import option


@dataclass(frozen=True)
class FeatureDistance(Score):
    """`||h(x') - h(x)||_p`, `x'` the input that `InputMargin` found, `h` the features; in units of the features.

    Where it is a fixed multiple of the input margin the features keep distances (an isometry up to scale), which is
    what makes margins in them consistent with margins in the input (`brittle.analysis.isometry`).

    Validity: exact for the input that was found, with an interval of no width; that input need not be the nearest.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.2, figure 6.

    Attributes:
        norm: of both distances, `l2`, `linf` or `l1`.
        attack: as for `InputMargin`.
        effort: as for `InputMargin`.
        bounded: as for `InputMargin`.

    Raises:
        ParameterError: an unknown norm, attack or effort.
    """

    norm: str = field(default="l2", metadata=option(choices=DISTANCES, several=True))
    attack: str = field(default="best", metadata=option(choices=("best", *ATTACKS)))
    effort: str = field(default="standard", metadata=option(choices=tuple(EFFORTS)))
    bounded: bool = field(default=True, metadata=option("unbounded", text="look for it outside the bounds, too"))

    name: ClassVar[str] = "feature_distance"
    title: ClassVar[str] = "Feature distance"
    quantity: ClassVar[str] = "feature_distance"
    cost: ClassVar[str] = "1 + that of input_margin"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 3.2"
    explanation: ClassVar[str] = (
        "How far the features move on the way to the nearest input found with another prediction; a fixed multiple of "
        "the input margin where features keep distances."
    )

    def __post_init__(self) -> None:
        check_norm(self.norm)
        check_search(self.norm, self.attack, self.effort, self.bounded)

    @property
    def needs(self) -> tuple[Forward, Nearest]:
        """The nearest inputs found, with their features."""
        return (Forward(), Nearest(self.norm, self.attack, self.effort, self.bounded, observe=True))

    @property
    def parameters(self) -> Parameters:
        """The norm, and every other setting that is not its default."""
        return InputMargin(self.norm, self.attack, self.effort, self.bounded).parameters

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """The distance between the features of the point and those of the nearest input found."""
        clean: Clean = measured[Forward()]
        nearest: NearestPoint = measured[self.needs[1]]
        assert nearest.feature_distance is not None
        missing = nearest.predicted < 0
        distance = nearest.feature_distance.double().masked_fill(missing & clean.tied, 0.0)
        distance = distance.masked_fill(missing & ~clean.tied, float("inf"))
        status = nearest_status(clean, nearest)
        return finish(distance, distance, distance, status, nearest.passes)
