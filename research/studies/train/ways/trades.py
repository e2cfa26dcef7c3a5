"""TRADES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from studies.train.ways.ascent import ascend, evaluating

NEARBY = 1e-3
"""Standard deviation of the start around the image, where the divergence itself has no gradient."""


@dataclass(frozen=True)
class Trades:
    """`CE(f(x), y) + weight max KL(p(x) || p(x'))` over `||x' - x||_inf <= epsilon`, `p` the softmax.

    Source: Zhang et al., Theoretically principled trade-off between robustness and accuracy (ICML 2019), equation 5;
    `weight` is the paper's `1 / lambda`.

    Attributes:
        epsilon: radius of the Linf ball.
        steps: of the ascent on the divergence.
        weight: of the divergence.
    """

    epsilon: float
    steps: int
    weight: float = 6.0

    name: ClassVar[str] = "trades"

    @property
    def strength(self) -> float:
        """The weight."""
        return self.weight

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean cross-entropy and the mean divergence."""
        with torch.no_grad(), evaluating(network):
            before = network(x)
        start = x + NEARBY * torch.randn_like(x)
        moved = ascend(
            network, x, start, grown * self.epsilon, self.steps, lambda logits: divergence(before, logits).sum()
        )
        logits = network(x)
        return cross_entropy(logits, y) + self.weight * divergence(logits, network(moved)).mean()


def divergence(clean: Tensor, second: Tensor) -> Tensor:
    """`KL(p || q) = sum_k p_k (log p_k - log q_k)` of the softmax of two rows of logits, `[B]`."""
    p, q = clean.log_softmax(dim=1), second.log_softmax(dim=1)
    return (p.exp() * (p - q)).sum(dim=1)
