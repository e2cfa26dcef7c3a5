"""The pseudo-margin as a score among the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from brittle.estimate import Direction, Estimate, Status
from brittle.measure import Features, HeadInputs, Measurement
from brittle.scores.base import Score, clean_status, finish, mark

if TYPE_CHECKING:
    from brittle.detector.pseudo_margin import PseudoMargin


@dataclass(frozen=True)
class PseudoMarginScore(Score):
    """A pseudo-margin as a score: `PseudoMargin.predict` of the features of the clean pass, in pixel units.

    Validity: that of the pseudo-margin. The interval has no width.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 3.3.

    Attributes:
        learned: the pseudo-margin.
    """

    learned: PseudoMargin

    name: ClassVar[str] = "pseudo_margin"
    title: ClassVar[str] = "Pseudo-margin"
    quantity: ClassVar[str] = "distance"
    cost: ClassVar[str] = "1"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 3.3"
    explanation: ClassVar[str] = "A stand-in for the input margin, learned from the features of other points."
    safer: ClassVar[Direction] = "higher"

    @property
    def needs(self) -> tuple[Features]:
        """The features of the clean pass."""
        return (Features(),)

    @property
    def parameters(self) -> dict[str, Any]:
        """The digest of the weights and, where it is known, the norm of the margins learned."""
        norm = self.learned.recipe.norm
        return {"sha256": self.learned.digest} | ({} if norm is None else {"norm": norm})

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        observed: HeadInputs = measured[Features()]
        margin = self.learned.predict(observed.features).to(observed.features.device)
        status = mark(clean_status(observed.clean), ~margin.isfinite(), Status.NONFINITE_LOGITS)
        return finish(margin, margin, margin, status, observed.clean.passes)
