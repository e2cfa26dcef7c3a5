"""Pseudo margins that train in a moment."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

SMALL: dict[str, Any] = {"width": 32, "epochs": 200}


def small(**changes: Any) -> dict[str, Any]:
    """Return `SMALL` with `changes`."""
    return SMALL | changes


class Misleading(nn.Module):
    """A network of two classes that one input decides, while a second input sets the size of the logits.

    The logit margin is `|x_0 - 1/2| exp(3 x_1)`, the distance to the boundary `|x_0 - 1/2|`. The features hold both.
    """

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2, bias=False)
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]]))

    def forward(self, x: Tensor) -> Tensor:
        signed = x[:, 0] - 0.5
        return self.head(torch.stack((signed * torch.exp(3 * x[:, 1]), x[:, 1], signed.abs() - x[:, 1]), dim=1))


def points(count: int, seed: int) -> Tensor:
    return torch.rand(count, 2, generator=torch.Generator().manual_seed(seed))


def margin(x: Tensor) -> Tensor:
    return (x[:, 0].double() - 0.5).abs()


def everything() -> Tensor:
    """Return 400 points to learn from, and 600 more."""
    return torch.cat((points(400, seed=0), points(600, seed=5)))
