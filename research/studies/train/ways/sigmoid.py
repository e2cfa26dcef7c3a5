"""Training with the average-case robustness itself, in its form that can be differentiated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

SMALLEST = 1e-3
"""Gradient norms are at least this: a margin that does not depend on the image has none."""


@dataclass(frozen=True)
class Sigmoid:
    """`CE(f(x), y) + weight (1 - p(x))` with the multivariate sigmoid of the Taylor estimator at the label.

    `p(x) = 1 / (1 + sum_i exp(-g_i(x) / (sigma ||grad g_i(x)||_2)))`, `g_i = z_y - z_i`, over the classes of the
    `classes` largest other logits: `p_robust` as `brittle.scores.TaylorMVS` has it, of the label instead of the
    predicted class, so that `1 - p` is the probability of being wrong under noise. Its logarithm in its place would
    have no bound: networks then learn to have no gradient at what they get wrong.

    Source: Han, Srinivas, Lakkaraju (UAI 2024), section 3.2.3, for the formula, which the paper makes for its
    derivatives, and section 5, for minimising the probability of misclassification. The paper does not say how: the
    sum with the cross-entropy is this study's choice.

    Attributes:
        sigma: standard deviation of the noise per pixel.
        classes: competing classes whose margins are differentiated, a backward pass each.
        weight: of the regulariser.
    """

    sigma: float
    classes: int = 3
    weight: float = 1.0

    name: ClassVar[str] = "sigmoid"

    @property
    def strength(self) -> float:
        """The standard deviation."""
        return self.sigma

    def loss(self, network: nn.Module, x: Tensor, y: Tensor, grown: float = 1.0) -> Tensor:
        """Return the mean cross-entropy and the mean regulariser."""
        x = x.detach().requires_grad_(True)
        logits = network(x)
        return cross_entropy(logits, y) + grown * self.weight * self.odds(logits, x, y).sigmoid().mean()

    def odds(self, logits: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """`log((1 - p) / p)` of each image, `[B]`, differentiable in the weights."""
        rivals = logits.detach().scatter(1, y[:, None], -torch.inf).topk(self.classes, dim=1).indices
        margins = logits.gather(1, y[:, None]) - logits.gather(1, rivals)
        slopes = [
            torch.autograd.grad(margin.sum(), x, create_graph=True)[0].flatten(1) for margin in margins.unbind(dim=1)
        ]
        norms = torch.stack(slopes, dim=1).square().sum(dim=2).clamp_min(SMALLEST**2).sqrt()
        return torch.logsumexp(-margins / (self.sigma * norms), dim=1)
