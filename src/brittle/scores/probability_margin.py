"""The margin between the two largest softmax probabilities, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from brittle.estimate import Direction, Estimate
from brittle.measure import Clean, Forward, Measurement
from brittle.scores.base import Score, clean_status, finish


@dataclass(frozen=True)
class ProbabilityMargin(Score):
    """`p_t - max_{j != t} p_j`, `p` the softmax of the logits; 0 at a tie.

    Validity: exact, with an interval of no width. It says how far the class stands out, not how far the boundary is.

    Source: Scheffer, Decomain, Wrobel, Active hidden Markov models for information extraction (IDA 2001), section 3.
    """

    name: ClassVar[str] = "probability_margin"
    title: ClassVar[str] = "Probability margin"
    quantity: ClassVar[str] = "probability"
    cost: ClassVar[str] = "1"
    reference: ClassVar[str] = "Scheffer et al. (IDA 2001)"
    explanation: ClassVar[str] = "The gap between the largest probability and the second."
    safer: ClassVar[Direction] = "higher"
    colour: ClassVar[int | None] = 13

    @property
    def needs(self) -> tuple[Forward]:
        """The clean logits."""
        return (Forward(),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        clean: Clean = measured[Forward()]
        top = clean.logits.double().softmax(dim=1).topk(2, dim=1).values
        margin = top[:, 0] - top[:, 1]
        return finish(margin, margin, margin, clean_status(clean), clean.passes)
