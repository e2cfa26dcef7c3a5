"""Numbers that stay within a tolerance: regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.decisions.base import Decision, alone, check_count, numbers
from brittle.errors import ModelError, ParameterError


@dataclass(frozen=True)
class Within(Decision):
    """Every number that the model returns stays within a tolerance: `tol - (f - f(x))` and `tol + (f - f(x))`.

    Attributes:
        tolerance: positive, one for all outputs or one for each, in the units of the output.

    Raises:
        ParameterError: a tolerance is not a positive finite number.
    """

    tolerance: float | tuple[float, ...]

    name: ClassVar[str] = "within"
    explanation: ClassVar[str] = "a number within a tolerance"
    one_number: ClassVar[bool] = True
    level: ClassVar[bool] = True
    targets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        given = self.tolerance if isinstance(self.tolerance, tuple | list) else (self.tolerance,)
        fine = all(isinstance(each, int | float) and math.isfinite(each) and each > 0 for each in given)
        if not given or not fine:
            raise ParameterError(
                f"a tolerance must be a positive finite number, as in within:0.1; found {self.tolerance!r}"
            )
        object.__setattr__(self, "tolerance", alone(given))

    @property
    def label(self) -> str:
        own = self.tolerance if isinstance(self.tolerance, tuple) else (self.tolerance,)
        return f"{self.name}:{','.join(f'{each:g}' for each in own)}"

    def decide(self, outputs: Tensor) -> Tensor:
        """The numbers at the point, `[B, R]`."""
        return outputs

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """How far each number is from either end of its tolerance, `[N, 2 R]`."""
        moved, tolerance = outputs - decided, outputs.new_tensor(self.tolerance)
        return torch.cat((tolerance - moved, tolerance + moved), dim=1)

    def right(self, decided: Tensor, labels: Tensor | None, targets: Tensor | None) -> list[bool | None]:
        if targets is None:
            return super().right(decided, labels, targets)
        check_count(targets, decided.shape[1])
        off = (decided.double() - targets.to(decided.device)).abs()
        return (off <= off.new_tensor(self.tolerance)).all(dim=1).tolist()

    def described(self, decided: Tensor) -> list[str]:
        return [numbers(row) for row in decided.tolist()]

    def check(self, outputs: Tensor) -> None:
        super().check(outputs)
        if isinstance(self.tolerance, tuple) and len(self.tolerance) != outputs.shape[1]:
            raise ModelError(
                "output_shape",
                f"{len(self.tolerance)} tolerances were given; the model returns {outputs.shape[1]} numbers",
            )
