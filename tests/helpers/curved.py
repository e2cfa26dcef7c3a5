"""Networks with a known Laplacian, smooth or piecewise linear."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from helpers.problems import inputs
from torch import Tensor, nn

SHAPE, CLASSES = (2, 6, 6), 4


class Residual(nn.Module):
    """`x + f(x)`."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Attention(nn.Module):
    """Self-attention over the rows of an image, by the fused kernel unless told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(12, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.movedim(1, 2).flatten(2)
        return self.heads(tokens, tokens, tokens, need_weights=False)[0]


def network(body: Callable[[], list[nn.Module]]) -> nn.Module:
    """Return a classifier of inputs of `SHAPE` in double precision, with large random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = nn.Sequential(*body(), nn.Flatten(), nn.LazyLinear(CLASSES)).double()
        layers(torch.zeros(2, *SHAPE, dtype=torch.float64))
        for parameter in layers.parameters():
            nn.init.normal_(parameter, std=0.35)
        for module in layers.modules():
            for name, buffer in module.named_buffers(recurse=False):
                if name.startswith("running"):
                    buffer.uniform_(0.5, 2.0)
    return layers.eval()


PIECEWISE_LINEAR: dict[str, Callable[[], list[nn.Module]]] = {
    "relu": lambda: [nn.Conv2d(2, 4, 3), nn.ReLU()],
    "max pooling": lambda: [nn.Conv2d(2, 4, 3), nn.MaxPool2d(2)],
    "batch norm": lambda: [nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()],
    "residual": lambda: [Residual(nn.Sequential(nn.Conv2d(2, 2, 3, padding=1), nn.ReLU()))],
    "linear": lambda: [],
}
SMOOTH: dict[str, Callable[[], list[nn.Module]]] = {
    "tanh": lambda: [nn.Conv2d(2, 4, 3), nn.Tanh()],
    "gelu": lambda: [nn.Conv2d(2, 4, 3), nn.GELU()],
    "attention": lambda: [Attention()],
    "layer norm": lambda: [nn.LayerNorm([6, 6])],
}
smooth = pytest.mark.parametrize("body", SMOOTH.values(), ids=SMOOTH.keys())


def points(count: int = 6) -> Tensor:
    return inputs(count, SHAPE, seed=1, dtype=torch.float64)
