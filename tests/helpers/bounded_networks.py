"""Networks of every family that can be bounded, and searches for counterexamples."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import brittle
from brittle.extensions.certificates.crown import Walk
from brittle.extensions.certificates.graph import Network
from brittle.extensions.certificates.intervals import propagate
from brittle.extensions.certificates.radius import Certified, CertifiedRadius
from brittle.extensions.certificates.region import Enclosure, Region
from brittle.extensions.certificates.tracing import build_network
from brittle.measure.forward import look

NORMS = ("linf", "l2")


class Residual(nn.Module):
    """Two branches that meet, one of them subtracted, with batch normalisation and average pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.body = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.ReLU(inplace=True), nn.Dropout())
        self.shortcut = nn.Conv2d(4, 4, 1, dilation=1, bias=False)
        self.head = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem((x - 0.5) / 0.25)
        x = torch.relu(self.body(x) - 0.5 * self.shortcut(x) + x)
        return self.head(nn.functional.avg_pool2d(x, 2).mean((2, 3)))


class Attending(nn.Module):
    """Tokens, attention of `torch.nn` with layer normalisation, which puts the rows on the second axis."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, 4, 3, stride=3)
        self.layer = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True, activation="gelu", norm_first=True)
        self.head = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(self.embed(x).flatten(2).transpose(1, 2)).mean(1))


class Gated(nn.Module):
    """Products of two branches, windows with padding, and shares over the channels."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(1, 3, 3, padding=1)
        self.pool = nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.SiLU(), nn.AvgPool2d(2, 1, 1, count_include_pad=False))
        self.norm, self.head = nn.GroupNorm(1, 3), nn.Linear(48, 4)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.other(x).softmax(1)
        return self.head(self.norm(self.pool(self.one(x) * gate)).flatten(1))


def lively(network: nn.Module, seed: int) -> nn.Module:
    """`network` with random weights and running statistics, in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.copy_(0.3 * torch.randn(4, generator=generator))  # type: ignore[union-attr]
                module.running_var.copy_(0.5 + torch.rand(4, generator=generator))  # type: ignore[union-attr]
    return network.eval()


def perceptron(activation: type[nn.Module]) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(36, 12), activation(), nn.Linear(12, 12), activation(), nn.Linear(12, 4)
    )


FAMILIES = {
    "perceptron": lambda: perceptron(nn.ReLU),
    "leaky": lambda: perceptron(nn.LeakyReLU),
    "sigmoid": lambda: perceptron(nn.Sigmoid),
    "tanh": lambda: perceptron(nn.Tanh),
    "convolution": lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 4)
    ),
    "pooled": lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4)
    ),
    "residual": Residual,
    "attending": Attending,
    "gated": Gated,
    "smooth": lambda: perceptron(nn.Softplus),
}

HEAVY = ("attending", "gated")

NETWORKS = [(family, seed) for family in FAMILIES for seed in range(1 if family in HEAVY else 2)]

CASES = [
    pytest.param(family, seed, norm, marks=() if (number + place) % 2 == 0 else pytest.mark.slow)
    for number, (family, seed) in enumerate(NETWORKS)
    for place, norm in enumerate(NORMS)
]
"""Every network in every norm; in the suite, every family and every seed is in both, and the rest is slow."""


def classifier_of(family: str, seed: int, dtype: torch.dtype = torch.float32) -> brittle.Classifier:
    return brittle.Classifier(lively(FAMILIES[family](), seed).to(dtype), bounds=(0, 1))


def certified(
    classifier: brittle.Classifier, points: Tensor, norm: str = "linf", bounded: bool = True, proof: str = "full"
) -> CertifiedRadius:
    return Certified(norm, bounded, proof)(
        classifier, look(classifier, points, [str(row) for row in range(len(points))], 0)
    )


def traced(classifier: brittle.Classifier, points: Tensor) -> Network:
    with classifier.evaluating():
        return build_network(classifier, points)


def logit_bounds(network: Network, region: Region) -> Enclosure:
    """Bounds on the class scores over a region by linear relaxation, `[B, C]`."""
    rows = region.rows() if network.row_by_row else [region]
    return _stacked([_logit_bounds(network, row) for row in rows])


def _logit_bounds(network: Network, region: Region) -> Enclosure:
    walk = Walk(region)
    logits = walk.logits(network)
    identity = torch.eye(logits.value.shape[1], dtype=torch.float64)[:, None].expand(-1, len(logits.value), -1)
    return Enclosure(walk.lower(logits.value, identity).T, -walk.lower(logits.value, -identity).T) & logits.interval


def interval_bounds(network: Network, inputs: Enclosure) -> Enclosure:
    """Bounds on the class scores for all inputs in a box by intervals, `[B, C]`."""
    rows = [slice(row, row + 1) for row in range(len(inputs.lower))] if network.row_by_row else [slice(None)]
    return _stacked([network.interpret(inputs.map(lambda end, row=row: end[row]), propagate) for row in rows])


def _stacked(parts: list[Enclosure]) -> Enclosure:
    return Enclosure(torch.cat([part.lower for part in parts]), torch.cat([part.upper for part in parts]))
