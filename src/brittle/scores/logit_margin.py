"""The logit margin: free, and often a good stand-in for the distance to the decision boundary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from brittle.estimate import Direction, Estimate
from brittle.measure import Clean, Forward, Measurement
from brittle.scores.base import Score, clean_status, finish


@dataclass(frozen=True)
class LogitMargin(Score):
    """`z_t - max_{j != t} z_j`, in units of the logits; 0 at a tie.

    Validity: exact, with an interval of no width. Whether it says anything about distance depends on the model.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.
    """

    name: ClassVar[str] = "logit_margin"
    title: ClassVar[str] = "Logit margin"
    quantity: ClassVar[str] = "logit_margin"
    cost: ClassVar[str] = "1"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 3"
    explanation: ClassVar[str] = "The gap between the largest logit and the second."
    safer: ClassVar[Direction] = "higher"
    colour: ClassVar[int | None] = 8

    @property
    def needs(self) -> tuple[Forward]:
        """The clean logits."""
        return (Forward(),)

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        clean: Clean = measured[Forward()]
        top = torch.topk(clean.logits.double(), 2, dim=1).values
        margin = top[:, 0] - top[:, 1]
        return finish(margin, margin, margin, clean_status(clean), clean.passes)
