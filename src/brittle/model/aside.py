"""What a point has beside the input that varies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Aside:
    """What a point has beside the input that varies: what was decided at it, and tensors that ride along.

    Attributes:
        decided: what `Decision.decide` kept of the model's output at the point, a row each; None where the decision is
            the predicted class, or is yet to be taken.
        tensors: the other tensors of the point by the names under which the model takes them, a row each.
    """

    decided: Tensor | None = None
    tensors: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])

    def only(self, rows: Tensor) -> Aside:
        """The rows `rows`, `[N]`; a row may stand there often, for the copies of a point."""
        decided = None if self.decided is None else self.decided[rows]
        return Aside(decided, {name: tensor[rows] for name, tensor in self.tensors.items()})
