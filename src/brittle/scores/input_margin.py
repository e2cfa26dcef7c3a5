"""The distance to the nearest input with another prediction: found by attacks, and certified from below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from brittle.estimate import Estimate, Status
from brittle.measure import Certified, CertifiedRadius, Clean, Forward, Measurement, Nearest, NearestPoint
from brittle.scores.base import Score, clean_status, finish, mark


@dataclass(frozen=True)
class InputMargin(Score):
    """`min ||x' - x||_p` over the inputs `x'` with another prediction than `x`, in pixel units; 0 at a tie.

    The value is the distance of the nearest such input that was found, and the upper end of the interval; the lower
    end is the radius that was certified, 0 without a certificate. The target is the predicted class, so misclassified
    points have margins too. Where nothing was found the value is infinite and the status `not_found`; where gradients
    vanish, or the attacks disagree, the status is `masked`.

    Validity: the interval always holds the margin. How near the value comes is measured in `docs/attacks.md`.

    Source: Ngnawé et al., Detecting brittle decisions for free (NeurIPS 2024), section 2.1.

    Attributes:
        norm: of the perturbation, `l2` or `linf`.
        attack: what looks for the nearest input: `best` for the nearest of all attacks, or one of them by name.
        effort: `fast`, `standard` or `thorough`, a budget of passes per point.
        clip: stay inside the classifier's bounds.
        certify: look for a lower bound as well.

    Raises:
        ParameterError: an unknown norm, attack or effort.
    """

    norm: str = "l2"
    attack: str = "best"
    effort: str = "standard"
    clip: bool = True
    certify: bool = False

    name: ClassVar[str] = "input_margin"
    title: ClassVar[str] = "Input margin"
    quantity: ClassVar[str] = "distance"
    cost: ClassVar[str] = "by effort"
    reference: ClassVar[str] = "Ngnawé et al. (NeurIPS 2024), section 2.1"

    def __post_init__(self) -> None:
        Nearest(self.norm, self.attack, self.effort, self.clip)

    @property
    def needs(self) -> tuple[Measurement, ...]:
        """The nearest inputs found and, where that is asked for, a certified radius."""
        nearest = Nearest(self.norm, self.attack, self.effort, self.clip)
        return (Forward(), nearest, Certified(self.norm, self.clip)) if self.certify else (Forward(), nearest)

    @property
    def parameters(self) -> dict[str, Any]:
        """The norm, and what was told otherwise than by default."""
        told = {"attack": self.attack, "effort": self.effort, "clip": self.clip, "certify": self.certify}
        usual = {"attack": "best", "effort": "standard", "clip": True, "certify": False}
        return {"norm": self.norm} | {name: value for name, value in told.items() if value != usual[name]}

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        clean: Clean = measured[Forward()]
        nearest: NearestPoint = measured[self.needs[1]]
        low, passes, detail = torch.zeros_like(nearest.distance), nearest.passes, None
        if self.certify:
            certified: CertifiedRadius = measured[self.needs[2]]
            low, passes = certified.radius, passes + certified.passes - clean.passes
            detail = _without_certificate(certified)
        status = mark(clean_status(clean), nearest.distance.isinf(), Status.NOT_FOUND)
        status = torch.where(
            nearest.masked & (status <= int(Status.NOT_FOUND)) & ~clean.tied, int(Status.MASKED), status
        )
        return finish(nearest.distance, low, nearest.distance, status, passes, detail)

    def counterexamples(self, measured: Mapping[Measurement, Any]) -> NearestPoint:
        """The nearest inputs with another prediction."""
        return measured[self.needs[1]]


def _without_certificate(certified: CertifiedRadius) -> tuple[str | None, ...]:
    """For each point why nothing could be certified, where the network has a layer that is not supported."""
    seen = None if certified.unsupported is None else f"no lower bound goes through {certified.unsupported}"
    return (seen,) * len(certified.radius)
