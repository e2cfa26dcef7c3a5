"""No decision: the numbers of a model as they are, for what is asked of the model and not of its decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.decisions.base import Decision


def as_numbers(outputs: Tensor) -> Tensor:
    """What a model returns, `[N, ...]`, as if it were class scores, `[N, C]`; one number stands beside a 0."""
    flat = outputs.flatten(1)
    return flat if flat.shape[1] > 1 else torch.cat((torch.zeros_like(flat), flat), dim=1)


@dataclass(frozen=True)
class Undecided(Decision):
    """The numbers that a model returns, read as if they were class scores; one number stands beside a 0.

    What looks at the model alone uses it: whether it repeats itself, mixes rows, has gradients. No score does.

    Attributes:
        instead_of: what is decided from the numbers elsewhere, which says how probabilities are read.
    """

    instead_of: Decision

    name: ClassVar[str] = "undecided"
    explanation: ClassVar[str] = "nothing"
    one_number: ClassVar[bool] = True
    relative: ClassVar[bool] = False
    linear: ClassVar[bool] = False

    def decide(self, outputs: Tensor) -> Tensor:
        """Nothing."""
        return outputs[:, :0]

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """There are none."""
        return outputs.new_zeros(len(outputs), 0)

    def described(self, decided: Tensor) -> list[str]:
        """Nothing."""
        return [""] * len(decided)

    def as_logits(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """The numbers, `[N, C]`."""
        return as_numbers(outputs)

    def check(self, outputs: Tensor) -> None:
        """Any will do."""
