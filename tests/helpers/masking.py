"""Operations whose gradients hide what they compute."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class MadeUp(torch.autograd.Function):
    """Steps of a half with the gradient of the identity."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return (2 * x).round() / 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


def without_grad(x: Tensor) -> Tensor:
    """Return the same numbers without their gradient."""
    with torch.no_grad():
        return 1.0 * x
