"""The maximum softmax probability: the usual confidence, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from brittle.estimate import Direction, Estimate
from brittle.measure import Clean, Forward, Measurement
from brittle.scores.base import Score, clean_status, finish


@dataclass(frozen=True)
class MaxProbability(Score):
    """`max_j p_j`, `p` the softmax of the logits.

    Validity: exact, with an interval of no width. It says how far the class stands out, not how far the boundary is.

    Source: Hendrycks, Gimpel, A baseline for detecting misclassified and out-of-distribution examples (ICLR 2017),
    section 2.
    """

    name: ClassVar[str] = "max_probability"
    title: ClassVar[str] = "Maximum probability"
    quantity: ClassVar[str] = "probability"
    cost: ClassVar[str] = "1"
    reference: ClassVar[str] = "Hendrycks, Gimpel (ICLR 2017)"
    explanation: ClassVar[str] = "The model's own confidence: the largest probability."
    safer: ClassVar[Direction] = "higher"
    colour: ClassVar[int | None] = 12

    @property
    def needs(self) -> tuple[Forward]:
        """The clean logits."""
        return (Forward(),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        clean: Clean = measured[Forward()]
        largest = clean.logits.double().softmax(dim=1).amax(dim=1)
        return finish(largest, largest, largest, clean_status(clean), clean.passes)
