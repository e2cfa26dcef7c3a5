"""Adversarial and clean logit pairing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from studies.train.ways.ascent import ascend_loss


@dataclass(frozen=True)
class _LogitPairing:
    epsilon: float
    steps: int
    weight: float = 0.5

    @property
    def strength(self) -> float:
        """The weight."""
        return self.weight

    def pair(self, network: nn.Module, x: Tensor, y: Tensor, grown: float) -> tuple[Tensor, Tensor]:
        """Logits of the images and of their adversarial examples, `[B, K]` both."""
        moved = ascend_loss(network, x, y, grown * self.epsilon, self.steps)
        return network(x), network(moved)


@dataclass(frozen=True)
class ALP(_LogitPairing):
    """`CE(f(x'), y) + weight ||z(x') - z(x)||_2^2 / K` at the adversarial example `x'` of PGD, `z` the `K` logits.

    Source: Kannan, Kurakin, Goodfellow, Adversarial logit pairing (2018), for the pairing; Wang et al. (ICLR 2020),
    table of loss functions, for the loss around it. Ngnawé et al. (NeurIPS 2024), section 3.1, train in that setting.

    Attributes:
        epsilon: radius of the Linf ball.
        steps: of the ascent on the cross-entropy.
        weight: of the pairing.
    """

    name: ClassVar[str] = "alp"

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean cross-entropy at adversarial examples and the mean pairing."""
        clean, attacked = self.pair(network, x, y, grown)
        return cross_entropy(attacked, y) + self.weight * pairing(clean, attacked)


@dataclass(frozen=True)
class CLP(_LogitPairing):
    """`CE(f(x), y) + weight ||z(x') - z(x)||_2^2 / K`: as ALP, but the cross-entropy is that of the clean image.

    Source: Wang et al. (ICLR 2020), table of loss functions, whose setting is that of Ngnawé et al. (NeurIPS 2024),
    section 3.1. The clean logit pairing of Kannan et al. (2018) itself pairs two different clean images and meets no
    adversarial example.

    Attributes:
        epsilon: radius of the Linf ball.
        steps: of the ascent on the cross-entropy.
        weight: of the pairing.
    """

    name: ClassVar[str] = "clp"

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean cross-entropy at the images and the mean pairing."""
        clean, attacked = self.pair(network, x, y, grown)
        return cross_entropy(clean, y) + self.weight * pairing(clean, attacked)


def pairing(clean: Tensor, attacked: Tensor) -> Tensor:
    """`||z' - z||_2^2 / K`, the mean over images."""
    return (attacked - clean).square().mean()
