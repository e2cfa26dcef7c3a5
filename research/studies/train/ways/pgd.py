"""Adversarial training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from studies.train.ways.ascent import ascend_loss


@dataclass(frozen=True)
class PGD:
    """`max CE(f(x'), y)` over `||x' - x||_inf <= epsilon`, sought by projected gradient ascent.

    Source: Madry et al. (ICLR 2018), equation 2.1.

    Attributes:
        epsilon: radius of the Linf ball.
        steps: of the ascent.
    """

    epsilon: float
    steps: int

    name: ClassVar[str] = "pgd"

    @property
    def strength(self) -> float:
        """The radius."""
        return self.epsilon

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean cross-entropy at adversarial examples."""
        return cross_entropy(network(ascend_loss(network, x, y, grown * self.epsilon, self.steps)), y)
