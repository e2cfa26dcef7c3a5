"""The margin between the two largest softmax probabilities, for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from brittle.scores.one_pass import OnePass, OnePassScore
from brittle.scores.serving import Serves


@dataclass(frozen=True)
class ProbabilityMargin(OnePassScore):
    """`p_t - max_{j != t} p_j`, `p` the softmax of the logits; 0 at a tie.

    Validity: exact, with an interval of no width. It says how far the class stands out, not how far the boundary is.

    Source: Scheffer, Decomain, Wrobel, Active hidden Markov models for information extraction (IDA 2001), section 3.
    """

    name: ClassVar[str] = "probability_margin"
    title: ClassVar[str] = "Probability margin"
    quantity: ClassVar[str] = "probability"
    reference: ClassVar[str] = "Scheffer et al. (IDA 2001)"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = "The gap between the largest probability and the second."
    colour: ClassVar[int | None] = 13
    most: ClassVar[float] = 1.0

    def value(self, found: OnePass) -> Tensor:
        """The largest probability less the second."""
        first, second = found.probabilities.topk(2, dim=1).values.unbind(1)
        return first - second
