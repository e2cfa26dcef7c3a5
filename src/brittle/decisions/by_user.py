"""A decision that a function of the user's compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.decisions.base import Decision
from brittle.decisions.function_code import code_digest
from brittle.errors import ModelError, ParameterError
from brittle.estimate import Parameters

Compare = Callable[[Tensor, Tensor], Tensor]
"""From what the model returns `[N, ...]` and what it returned at the point `[N, ...]`, row by row, to margins `[N, K]`
or `[N]`; True and False count as 1 and -1."""


@dataclass(frozen=True)
class Custom(Decision):
    """Whatever a function says: `compare(output, output at the point)` is positive while "it is the same".

    Such as the overlap of two masks minus one half, or how far apart the first two of a ranking are. Scores of sampled
    copies ask for the sign alone. Scores with gradients differentiate the function, so it must be made of operations
    that PyTorch differentiates; a step has no gradient, and `brittle doctor` says so.

    Attributes:
        compare: from `[N, ...]` and `[N, ...]`, row by row, to `[N]` or `[N, K]`: all positive, or True, while it
            holds. An output compared with itself holds.
        name_of: what tables and reports call it; the function's name by default.

    Raises:
        ParameterError: `compare` is no function.

    Example:
        >>> import torch, brittle
        >>> def overlap(mask, mask_at_point):
        ...     own, there = (each > 0 for each in (mask_at_point.flatten(1), mask.flatten(1)))
        ...     return ((own & there).sum(1) / (own | there).sum(1)).nan_to_num(1.0) - 0.5
        >>> network = torch.nn.Conv2d(1, 1, 3, padding=1)
        >>> classifier = brittle.Classifier(network, decision=brittle.decisions.Custom(overlap))
        >>> found = brittle.scores.MonteCarlo(sigma=0.1, draws=20)(classifier, torch.rand(2, 1, 8, 8))
        >>> bool(((0 <= found.value) & (found.value <= 1)).all())
        True
    """

    compare: Compare
    name_of: str | None = None

    name: ClassVar[str] = "custom"
    explanation: ClassVar[str] = "what a function of the user's compares"
    one_number: ClassVar[bool] = True
    linear: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.compare):
            raise ParameterError(
                f"Custom takes a function of two outputs that gives margins; found {self.compare!r:.60}"
            )

    @property
    def label(self) -> str:
        return f"{self.name}:{self.name_of or getattr(self.compare, '__name__', type(self.compare).__name__)}"

    @property
    def parameters(self) -> Parameters:
        return {"function": self.label.partition(":")[2], "code": code_digest(self.compare)}

    def decide(self, outputs: Tensor) -> Tensor:
        """The output at the point, `[B, ...]`."""
        return outputs

    def margins(self, outputs: Tensor, decided: Tensor) -> Tensor:
        """What the function gives, `[N, K]`; a `ModelError` where that is not a row of numbers for each output."""
        found = self.compare(outputs.clone(), decided.clone())  # it may work in place, here and in the next call
        if isinstance(found, Tensor) and found.dim() == 1:
            found = found[:, None]
        fine = isinstance(found, Tensor) and found.dim() == 2 and len(found) == len(outputs) and found.shape[1] > 0
        if not fine or found.is_complex():
            seen = f"a tensor of shape {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            raise ModelError(
                "output_shape",
                f"the function of the decision {self.label} gave {seen} for {len(outputs)} outputs; expected margins "
                f"[{len(outputs)}] or [{len(outputs)}, K], positive while the decision holds",
            )
        if found.dtype == torch.bool:
            return torch.where(found, 1.0, -1.0)
        return found.clone() if found.is_floating_point() else found.double()

    def check_taken(self, margins: Tensor) -> None:
        broken = (margins < 0).any(dim=1)
        if bool(broken.any()):
            raise ModelError(
                "decision",
                f"the function of the decision {self.label} gave {float(margins.detach().amin(dim=1)[broken][0]):.4g} "
                f"for an output compared with itself; there the decision holds, so every margin must be positive",
            )

    def described(self, decided: Tensor) -> list[str]:
        return [""] * len(decided)

    def check(self, outputs: Tensor) -> None:
        """Any tensor with a row for each input can be compared."""
