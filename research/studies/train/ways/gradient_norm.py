"""Gradient norm regularisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class GradientNorm:
    """`CE(f(x), y) + weight ||grad_x f(x)||_2^2`.

    `f` is the vector of logits and `x` has pixels in [0, 1], so the penalty is the squared Frobenius norm of the
    Jacobian, the sum over classes of squared gradient norms. It is estimated without bias by one backward pass:
    `E ||v^T J||_2^2 = ||J||_F^2` for `v` of independent signs, drawn anew for each image and step. Where a batch norm
    mixes the images of a batch, what the logits of the others change with an image is penalised, too.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 4, after Srinivas, Fleuret, Knowledge transfer with Jacobian
    matching (ICML 2018). The paper does not say which scalar its gradient is of, nor in what units of `x`: both are
    this study's reading. The one direction a step is that of Hoffman, Roberts, Yaida, Robust learning with Jacobian
    regularization (2019), with signs in the place of directions on the sphere.

    Attributes:
        weight: of the penalty; 1e-4, 1e-3 and 1e-2 in the paper.
    """

    weight: float

    name: ClassVar[str] = "gradnorm"

    @property
    def strength(self) -> float:
        """The weight."""
        return self.weight

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean cross-entropy and the mean penalty."""
        x = x.detach().requires_grad_(True)
        logits = network(x)
        signs = 2.0 * torch.randint_like(logits, 2) - 1.0
        return cross_entropy(logits, y) + grown * self.weight * penalty(logits, x, signs).mean()


def penalty(logits: Tensor, x: Tensor, signs: Tensor) -> Tensor:
    """`||v^T J||_2^2` of each image, `[B]`, differentiable in the weights; `signs` is `v`, `[B, K]`."""
    (slope,) = torch.autograd.grad((signs * logits).sum(), x, create_graph=True)
    return slope.flatten(1).square().sum(dim=1)
