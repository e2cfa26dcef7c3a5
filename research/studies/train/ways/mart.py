"""MART."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from studies.train.ways.ascent import ascend_loss
from studies.train.ways.trades import divergence


@dataclass(frozen=True)
class Mart:
    """`BCE(p(x'), y) + weight KL(p(x) || p(x')) (1 - p_y(x))` at the adversarial example `x'` of PGD.

    `BCE(p, y) = -log p_y - log(1 - max_{k != y} p_k)`: what is misclassified without any attack counts most.

    Source: Wang et al., Improving adversarial robustness requires revisiting misclassified examples (ICLR 2020),
    table of loss functions.

    Attributes:
        epsilon: radius of the Linf ball.
        steps: of the ascent on the cross-entropy.
        weight: of the weighted divergence.
    """

    epsilon: float
    steps: int
    weight: float = 5.0

    name: ClassVar[str] = "mart"

    @property
    def strength(self) -> float:
        """The weight."""
        return self.weight

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean boosted cross-entropy and the mean weighted divergence."""
        moved = ascend_loss(network, x, y, grown * self.epsilon, self.steps)
        clean, attacked = network(x), network(moved)
        unsure = 1 - clean.softmax(dim=1).gather(1, y[:, None])[:, 0]
        return (boosted(attacked, y) + self.weight * divergence(clean, attacked) * unsure).mean()


def boosted(logits: Tensor, y: Tensor) -> Tensor:
    """`-log p_y - log(1 - max_{k != y} p_k)` of each row, `[B]`; finite, however sure the network is."""
    total = logits.logsumexp(dim=1)
    label_logit = logits.gather(1, y[:, None])[:, 0]
    nearest = logits.detach().scatter(1, y[:, None], -torch.inf).argmax(dim=1)
    other_logits = logits.scatter(1, nearest[:, None], -torch.inf).logsumexp(dim=1)
    return 2 * total - label_logit - other_logits
