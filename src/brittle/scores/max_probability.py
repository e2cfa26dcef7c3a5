"""The maximum softmax probability: the usual confidence, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from brittle.scores.one_pass import MOST_CLASSES, OnePass, OnePassScore
from brittle.scores.serving import Serves


@dataclass(frozen=True)
class MaxProbability(OnePassScore):
    """`max_j p_j`, `p` the softmax of the logits.

    Validity: exact, with an interval of no width. It says how far the class stands out, not how far the boundary is.

    Source: Hendrycks, Gimpel, A baseline for detecting misclassified and out-of-distribution examples (ICLR 2017),
    section 2.
    """

    name: ClassVar[str] = "max_probability"
    title: ClassVar[str] = "Maximum probability"
    quantity: ClassVar[str] = "probability"
    reference: ClassVar[str] = "Hendrycks, Gimpel (ICLR 2017)"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = "The model's own confidence: the largest probability."
    colour: ClassVar[int | None] = 12
    least: ClassVar[float] = 1.0 / MOST_CLASSES
    most: ClassVar[float] = 1.0

    def value(self, found: OnePass) -> Tensor:
        """The largest probability."""
        return found.probabilities.amax(dim=1)
