"""Healthy networks of many kinds, small and with random weights, for checks that must not raise false alarms."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

CLASSES = 5
SHAPE = (3, 12, 12)


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int, activation: type[nn.Module] = nn.ReLU) -> None:
        super().__init__()
        self.inside = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            activation(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
        )
        self.after = activation()

    def forward(self, x: Tensor) -> Tensor:
        return self.after(x + self.inside(x))


class Attention(nn.Module):
    """A vision transformer of one block: patches, self-attention over them, and an MLP."""

    def __init__(self, width: int = 24, side: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(SHAPE[0], width, side, stride=side)
        self.place = nn.Parameter(torch.randn(1, (SHAPE[1] // side) ** 2, width) * 0.1)
        self.block = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).mT + self.place
        return self.head(self.block(tokens).mean(dim=1))


def _dense(activation: type[nn.Module], depth: int = 3, width: int = 48) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    size = SHAPE[0] * SHAPE[1] * SHAPE[2]
    for _ in range(depth):
        layers += [nn.Linear(size, width), activation()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, CLASSES))


def _convolutional(*middle: nn.Module, activation: type[nn.Module] = nn.ReLU) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(SHAPE[0], 12, 3), activation(), *middle, nn.Flatten(), nn.LazyLinear(32), activation(),
        nn.Linear(32, CLASSES),
    )  # fmt: skip


KINDS: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(432, CLASSES)),
    "mlp relu": lambda: _dense(nn.ReLU),
    "mlp deep relu": lambda: _dense(nn.ReLU, depth=8),
    "mlp tanh": lambda: _dense(nn.Tanh),
    "mlp sigmoid": lambda: _dense(nn.Sigmoid),
    "mlp leaky relu": lambda: _dense(nn.LeakyReLU),
    "conv": _convolutional,
    "conv max pooling": lambda: _convolutional(nn.MaxPool2d(2)),
    "conv average pooling": lambda: _convolutional(nn.AvgPool2d(2), activation=nn.SiLU),
    "conv batch norm": lambda: _convolutional(nn.BatchNorm2d(12)),
    "conv group norm": lambda: _convolutional(nn.GroupNorm(3, 12), activation=nn.GELU),
    "conv dropout": lambda: _convolutional(nn.Dropout(0.5)),
    "resnet": lambda: nn.Sequential(
        nn.Conv2d(SHAPE[0], 12, 3, padding=1), Residual(12), nn.MaxPool2d(2), Residual(12), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(12, CLASSES),
    ),
    "vision transformer": Attention,
}  # fmt: skip
"""Architectures by name."""


def network(kind: str, dtype: torch.dtype = torch.float32, seed: int = 0, gain: float = 1.0) -> nn.Module:
    """Return a network of `KINDS` with random weights, in evaluation mode, and batch statistics of noise."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        built = KINDS[kind]()
        built.train()
        with torch.no_grad():
            built(torch.rand(64, *SHAPE))
            for parameter in built.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(gain)
    return built.to(dtype).eval()
