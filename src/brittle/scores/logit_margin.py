"""The logit margin: free, and often a good stand-in for the distance to the decision boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from brittle.scores.one_pass import LARGEST, OnePass, OnePassScore
from brittle.scores.serving import Serves


@dataclass(frozen=True)
class LogitMargin(OnePassScore):
    """`z_t - max_{j != t} z_j`, in units of the logits; 0 at a tie.

    Validity: exact, with an interval of no width. Whether it says anything about distance depends on the model.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.
    """

    name: ClassVar[str] = "logit_margin"
    title: ClassVar[str] = "Logit margin"
    quantity: ClassVar[str] = "logit_margin"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 3"
    serves: ClassVar[Serves] = "all"
    explanation: ClassVar[str] = "The gap between the largest logit and the second."
    colour: ClassVar[int | None] = 8
    most: ClassVar[float] = 2.0 * LARGEST

    def value(self, found: OnePass) -> Tensor:
        """The largest logit less the second."""
        first, second = found.top
        return first - second
