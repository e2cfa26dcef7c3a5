"""Gaussian augmentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class Gaussian:
    """`CE(f(x + e), y)` with `e ~ N(0, sigma^2 I)`, drawn anew for each image and step; noisy pixels are not clipped.

    Source: Cohen, Rosenfeld, Kolter, Certified adversarial robustness via randomized smoothing (ICML 2019), section
    3.3. To the second order it is gradient norm regularisation (Srinivas, Fleuret, ICML 2018).

    Attributes:
        sigma: standard deviation of the noise per pixel.
    """

    sigma: float

    name: ClassVar[str] = "gaussian"

    @property
    def strength(self) -> float:
        """The standard deviation."""
        return self.sigma

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean cross-entropy at noisy images."""
        return cross_entropy(network(x + grown * self.sigma * torch.randn_like(x)), y)
