"""The network that predicts margins from features."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from brittle.detector.pseudo_margin.recipe import Recipe

TINY = 1e-12
"""Distance between the rows of two classes below which they count as equal."""


class Regressor(nn.Module):
    """Features `[B, d]` to margins `[B]`, double precision; NaN for features that are not finite.

    `scale * sigmoid(W_6 relu(W_5 ... relu(W_1 (u - mean) / std)))`, biases left out of the formula. `u` are the
    features `h` and, where the head of the network was given, beside them its margins in feature space in increasing
    order, `(z_t - z_j) / ||w_t - w_j||_q` for every class `j != t`: functions of `h` that few points do not suffice to
    learn.
    """

    head_weight: Tensor
    head_bias: Tensor
    lengths: Tensor
    mean: Tensor
    std: Tensor
    scale: Tensor

    def __init__(self, features: int, classes: int, layers: int, width: int) -> None:
        super().__init__()
        read = features + max(0, classes - 1)
        sizes = [read] + [width] * layers
        hidden = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair, dtype=torch.float32), nn.ReLU())]
        self.body = nn.Sequential(*hidden, nn.Linear(width, 1, dtype=torch.float32))
        self.register_buffer("head_weight", torch.zeros(classes, features, dtype=torch.float64))
        self.register_buffer("head_bias", torch.zeros(classes, dtype=torch.float64))
        self.register_buffer("lengths", torch.ones(classes, classes, dtype=torch.float64))
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(read, dtype=torch.float32))
        self.register_buffer("std", torch.ones(read, dtype=torch.float32))

    def read(self, features: Tensor) -> Tensor:
        """What the perceptron reads, `[B, d]` or `[B, d + C - 1]`, single precision."""
        if not len(self.head_bias):
            return features.float()
        logits = features.double() @ self.head_weight.mT + self.head_bias
        own = logits.argmax(dim=1, keepdim=True)
        gaps = logits.gather(1, own) - logits
        margins = gaps / self.lengths[own[:, 0]].clamp_min(TINY)
        ordered = margins.scatter(1, own, torch.inf).sort(dim=1).values[:, :-1]
        return torch.cat((features.float(), ordered.float()), dim=1)

    def share(self, read: Tensor) -> Tensor:
        """The prediction as a share of the scale, `[B]`, for what was `read`."""
        return self.body((read - self.mean) / self.std).squeeze(1).sigmoid()

    def forward(self, features: Tensor) -> Tensor:
        """The margins `[B]` of features `[B, d]`."""
        margins = self.scale * self.share(self.read(features)).double()
        return torch.where(features.isfinite().all(dim=1), margins, torch.nan)


def blank(recipe: Recipe) -> Regressor:
    """A regressor without numbers yet; none are drawn from the program's own random stream."""
    with torch.device("meta"):
        regressor = Regressor(recipe.features, recipe.classes, recipe.layers, recipe.width)
    return regressor.to_empty(device="cpu")
