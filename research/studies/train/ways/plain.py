"""Plain training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class Plain:
    """`CE(f(x), y)`: the cross-entropy of the softmax."""

    name: ClassVar[str] = "plain"

    @property
    def strength(self) -> None:
        """There is none."""
        return None

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean cross-entropy."""
        return cross_entropy(network(x), y)
