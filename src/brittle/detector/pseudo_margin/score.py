"""The pseudo-margin as a score among the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from brittle.detector.pseudo_margin.learned import LearnedMargin
from brittle.estimate import Parameters, Status
from brittle.scores.base import mark
from brittle.scores.one_pass import OnePass, OnePassScore


@dataclass(frozen=True)
class PseudoMarginScore(OnePassScore):
    """A pseudo-margin as a score: `PseudoMargin.predict` of the features of the clean pass, in pixel units.

    Validity: that of the pseudo-margin. The interval has no width.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.3.

    Attributes:
        learned: the pseudo-margin.
    """

    learned: LearnedMargin

    name: ClassVar[str] = "pseudo_margin"
    title: ClassVar[str] = "Pseudo-margin"
    quantity: ClassVar[str] = "distance"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 3.3"
    uses_features: ClassVar[bool] = True
    explanation: ClassVar[str] = "A stand-in for the input margin, learned from the features of other points."

    @property
    def parameters(self) -> Parameters:
        """The digest of the weights and, where it is known, the norm of the margins learned."""
        norm = self.learned.recipe.norm
        digest: Parameters = {"sha256": self.learned.digest}
        return digest if norm is None else digest | {"norm": norm}

    def value(self, found: OnePass) -> Tensor:
        """The margin that was learned."""
        return self.learned.regressor(found.features_and_weight[0])

    def checked_value(self, found: OnePass) -> Tensor:
        """The same on the device of the weights, for features of the size that it was learned from."""
        return self.learned.predict(found.features_and_weight[0])

    @property
    def network(self) -> nn.Module:
        """The regressor."""
        return self.learned.regressor

    def judge(self, status: Tensor, value: Tensor) -> Tensor:
        """Features that are not finite have no margin."""
        return mark(status, ~value.isfinite(), Status.NONFINITE_LOGITS)
