"""Adversarial training with single steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from studies.train.ways.ascent import evaluating


@dataclass(frozen=True)
class FGSM:
    """`CE(f(x), y) / 2 + CE(f(x'), y) / 2` with one step of half the radius after a random one of the other half.

    `x' = r + epsilon / 2 sign(grad CE(f(r), y))` and `r = x + epsilon / 2 sign(e)`, `e ~ N(0, I)`, both clipped to
    [0, 1].

    Source: Goodfellow, Shlens, Szegedy, Explaining and harnessing adversarial examples (ICLR 2015), section 6, for the
    loss; Tramèr et al., Ensemble adversarial training (ICLR 2018), R+FGSM, for the random step, without which
    networks learn to mislead the gradient. These two are what Yang, Liu, Bilgic (TMLR 2023), section 4.4, train with.

    Attributes:
        epsilon: radius of the Linf ball.
    """

    epsilon: float

    name: ClassVar[str] = "fgsm"

    @property
    def strength(self) -> float:
        """The radius."""
        return self.epsilon

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean over the images and their adversarial examples."""
        moved = self.example(network, x, y, grown * self.epsilon)
        return (cross_entropy(network(x), y) + cross_entropy(network(moved), y)) / 2

    def example(self, network: nn.Module, x: Tensor, y: Tensor, epsilon: float) -> Tensor:
        """Adversarial examples, `[B, C, H, W]`."""
        begun = (x + epsilon / 2 * torch.randn_like(x).sign()).clamp(0, 1).requires_grad_(True)
        with evaluating(network):
            (slope,) = torch.autograd.grad(cross_entropy(network(begun), y, reduction="sum"), begun)
        return (begun.detach() + epsilon / 2 * slope.sign()).clamp(0, 1)
