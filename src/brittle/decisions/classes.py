"""Decisions between classes: the predicted one, one of two by one logit, the best few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.decisions.base import Decision
from brittle.errors import ModelError, ParameterError


@dataclass(frozen=True)
class PredictedClass(Decision):
    """The class with the largest score: margins `z_t - z_j`, `j != t`. The default; every score serves it."""

    name: ClassVar[str] = "class"
    explanation: ClassVar[str] = "the predicted class"

    @property
    def of_classes(self) -> bool:
        return True

    @property
    def has_probability(self) -> bool:
        return True

    def decide(self, outputs: Tensor) -> Tensor:
        """The predicted class, `[B, 1]`; the first of several with the largest score."""
        return outputs.argmax(dim=1, keepdim=True)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """`z_t - z_j` for every other class `j`, `[N, C - 1]`."""
        others = torch.arange(outputs.shape[1] - 1, device=outputs.device)
        others = others + (others >= decided)
        return outputs.gather(1, decided) - outputs.gather(1, others)

    def classes_of(self, logits: Tensor, decided: Tensor | None) -> int | None:
        return logits.shape[1]

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        if labels is None:
            return super().right(decided, labels, targets)
        return (decided[:, 0] == labels.to(decided)).tolist()

    def described(self, decided: Tensor) -> list[str]:
        return [str(own) for own in decided[:, 0].tolist()]


@dataclass(frozen=True)
class OneLogit(PredictedClass):
    """The sign of one logit `z`: class 1 where it is positive, margin `z` or `-z`. Every score serves it.

    The same as `outputs="binary-logit"`.
    """

    name: ClassVar[str] = "one-logit"
    explanation: ClassVar[str] = "the sign of one logit"


@dataclass(frozen=True)
class SameTop(Decision):
    """The same `count` classes score highest, in any order: `z_a - z_b`, `a` inside, `b` outside.

    Attributes:
        count: how many, at least 1.

    Raises:
        ParameterError: fewer than 1.
    """

    count: int = 5

    name: ClassVar[str] = "top"
    explanation: ClassVar[str] = "which few classes score highest"

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise ParameterError(f"top:K needs a whole number K of at least 1; found {self.count!r:.40}")

    @property
    def has_classes(self) -> bool:
        return True

    @property
    def label(self) -> str:
        return f"top:{self.count}"

    def decide(self, outputs: Tensor) -> Tensor:
        """The classes in the order of their scores, the `count` highest first, `[B, C]`."""
        return outputs.argsort(dim=1, descending=True, stable=True)

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """`z_a - z_b` for every `a` of the highest and every `b` of the others, `[N, count (C - count)]`."""
        ordered = outputs.gather(1, decided)
        inside, outside = ordered[:, : self.count, None], ordered[:, None, self.count :]
        return (inside - outside).flatten(1)

    def codes(self, decided: Tensor) -> list[int | None]:
        return decided[:, 0].tolist()

    def classes_of(self, logits: Tensor, decided: Tensor | None) -> int | None:
        return None if decided is None else decided.shape[1]

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        if labels is None:
            return super().right(decided, labels, targets)
        return (decided[:, : self.count] == labels[:, None].to(decided)).any(dim=1).tolist()

    def described(self, decided: Tensor) -> list[str]:
        return [", ".join(map(str, row)) for row in decided[:, : self.count].tolist()]

    def check(self, outputs: Tensor) -> None:
        super().check(outputs)
        if outputs.shape[1] <= self.count:
            raise ModelError(
                "output_shape",
                f"the decision {self.label} needs more than {self.count} classes; the model has {outputs.shape[1]}",
            )
