"""The entropy of the softmax probabilities, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from brittle.estimate import Direction, Estimate
from brittle.measure import Clean, Forward, Measurement
from brittle.scores.base import Score, clean_status, finish


@dataclass(frozen=True)
class Entropy(Score):
    """`-sum_j p_j log p_j` in nats, `p` the softmax of the logits; the smaller, the surer.

    Validity: exact, with an interval of no width. It says how sure the model is, not how far the boundary is.

    Source: Shannon, A mathematical theory of communication (1948), section 6.
    """

    name: ClassVar[str] = "entropy"
    title: ClassVar[str] = "Entropy"
    quantity: ClassVar[str] = "entropy"
    cost: ClassVar[str] = "1"
    reference: ClassVar[str] = "Shannon (1948)"
    explanation: ClassVar[str] = "How widely the model spreads its probabilities; smaller is surer."
    safer: ClassVar[Direction] = "lower"
    colour: ClassVar[int | None] = 14

    @property
    def needs(self) -> tuple[Forward]:
        """The clean logits."""
        return (Forward(),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        clean: Clean = measured[Forward()]
        entropy = torch.special.entr(clean.logits.double().softmax(dim=1)).sum(dim=1)
        return finish(entropy, entropy, entropy, clean_status(clean), clean.passes)
