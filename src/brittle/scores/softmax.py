"""The predicted class's softmax probability, taken for its robustness."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from brittle.errors import ParameterError
from brittle.estimate import FLIP_PROBABILITY, Direction, Estimate
from brittle.measure import Clean, Forward, Measurement
from brittle.scores.base import Score, clean_status, finish
from brittle.scores.evidence import no_copies


@dataclass(frozen=True)
class Softmax(Score):
    """One minus the softmax probability of the predicted class, `S / (1 + S)`, `S = sum_i exp(-g_i / T)`.

    Validity: equals `TaylorMVS` where the gradients of all margins have one norm and `T = sigma ||grad g||`; in
    general a poor estimate of robustness, and the same at every sigma. The interval has no width: nothing is sampled.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3; (ICML workshop 2023), lemma 3.2.

    Attributes:
        temperature: temperature `T` of the softmax, positive.

    Raises:
        ParameterError: the temperature is not a positive finite number.
    """

    temperature: float = 1.0

    name: ClassVar[str] = "softmax"
    title: ClassVar[str] = "Softmax"
    quantity: ClassVar[str] = FLIP_PROBABILITY
    cost: ClassVar[str] = "1"
    reference: ClassVar[str] = "Han et al. (UAI 2024), section 3.2.3"
    explanation: ClassVar[str] = "The model's own confidence in its prediction. It knows nothing of the noise."
    safer: ClassVar[Direction] = "lower"
    colour: ClassVar[int | None] = 7
    preference: ClassVar[float | None] = 8
    model: ClassVar[str | None] = "the softmax"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise ParameterError("temperature", f"temperature must be positive and finite; found {self.temperature}")

    @property
    def needs(self) -> tuple[Forward]:
        """The clean logits."""
        return (Forward(),)

    @property
    def parameters(self) -> dict[str, Any]:
        """The temperature, unless it is 1."""
        return {} if self.temperature == 1.0 else {"temperature": self.temperature}

    def estimate(self, measured: Mapping[Measurement, Any], confidence: float) -> Estimate:
        """See the class."""
        clean: Clean = measured[Forward()]
        logits = clean.logits.double() / self.temperature
        own = logits.gather(1, clean.predicted[:, None])
        others = logits.scatter(1, clean.predicted[:, None], -torch.inf)
        flips = torch.sigmoid(torch.logsumexp(others - own, dim=1))
        return finish(flips, flips, flips, clean_status(clean), clean.passes, evidence=no_copies(flips))
