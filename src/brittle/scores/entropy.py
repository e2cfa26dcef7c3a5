"""The entropy of the softmax probabilities, for comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.estimate import Direction
from brittle.scores.one_pass import MOST_CLASSES, OnePass, OnePassScore
from brittle.scores.serving import Serves


@dataclass(frozen=True)
class Entropy(OnePassScore):
    """`-sum_j p_j log p_j` in nats, `p` the softmax of the logits; the smaller, the surer.

    Validity: exact, with an interval of no width. It says how sure the model is, not how far the boundary is.

    Source: Shannon, A mathematical theory of communication (1948), section 6.
    """

    name: ClassVar[str] = "entropy"
    title: ClassVar[str] = "Entropy"
    quantity: ClassVar[str] = "entropy"
    reference: ClassVar[str] = "Shannon (1948)"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = "How widely the model spreads its probabilities; smaller is surer."
    safer: ClassVar[Direction] = "lower"
    colour: ClassVar[int | None] = 14
    most: ClassVar[float] = math.log(MOST_CLASSES)

    def value(self, found: OnePass) -> Tensor:
        """The entropy of the probabilities."""
        return torch.special.entr(found.probabilities).sum(dim=1)
