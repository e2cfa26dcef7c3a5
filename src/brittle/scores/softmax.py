"""The predicted class's softmax probability, taken for its robustness."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.errors import ParameterError
from brittle.estimate import FLIP_PROBABILITY, Direction, Parameters
from brittle.scores.evidence import no_copies
from brittle.scores.one_pass import OnePass, OnePassScore
from brittle.scores.serving import Serves


@dataclass(frozen=True)
class Softmax(OnePassScore):
    """One minus the softmax probability of the predicted class, `S / (1 + S)`, `S = sum_i exp(-g_i / T)`.

    Validity: equals `TaylorMVS` where the gradients of all margins have one norm and `T = sigma ||grad g||`; in
    general a poor estimate of robustness, and the same at every sigma. It has no interval: nothing is sampled.

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
    reference: ClassVar[str] = "Han et al. (UAI 2024), section 3.2.3"
    serves: ClassVar[Serves] = "probability"
    explanation: ClassVar[str] = "The model's own confidence in its prediction. It knows nothing of the noise."
    safer: ClassVar[Direction] = "lower"
    colour: ClassVar[int | None] = 7
    preference: ClassVar[float | None] = 8
    model: ClassVar[str | None] = "the softmax"
    most: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise ParameterError(f"temperature must be positive and finite; found {self.temperature}")

    @property
    def parameters(self) -> Parameters:
        """The temperature, unless it is 1."""
        written = super().parameters
        if self.temperature == 1.0:
            del written["temperature"]
        return written

    def value(self, found: OnePass) -> Tensor:
        """One minus the largest probability, to full relative precision."""
        logits = found.logits.double() / self.temperature
        predicted = found.logits.argmax(dim=1, keepdim=True)
        own = logits.gather(1, predicted)
        others = logits.scatter(1, predicted, -torch.inf)
        return torch.sigmoid(torch.logsumexp(others - own, dim=1))

    def evidence(self, value: Tensor) -> Tensor:
        """No noisy copy stands behind it."""
        return no_copies(value)
