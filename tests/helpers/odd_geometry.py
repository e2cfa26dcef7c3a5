"""Sound networks whose margins under noise are not normal, or that only look odd."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import torch
from helpers.odd_company import Attentive, Recurrent
from helpers.odd_parts import GRADIENTS, SERIES, SHAPE, margin, seeded, small, sound
from helpers.truth import Network
from torch import Tensor, nn

# Sound networks.


def trained(problem: str, classes: int = 2, activation: type[nn.Module] = nn.ReLU) -> Callable[[], nn.Module]:
    return lambda: _trained(problem, classes, activation)


@cache
def _trained(problem: str, classes: int, activation: type[nn.Module]) -> nn.Module:
    """Train a perceptron on points in the plane, in a fraction of a second."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(300, 2, generator=generator) * 2 - 1
    labels = {
        "rings": lambda: (x.norm(dim=1) * 2.2).long() % 2,
        "moons": lambda: (x[:, 1] > 0.5 * torch.sin(4 * x[:, 0])).long(),
        "blobs": lambda: torch.cdist(x, torch.rand(classes, 2, generator=generator) * 1.6 - 0.8).argmin(1),
    }[problem]()
    network = seeded(lambda: nn.Sequential(nn.Linear(2, 24), activation(), nn.Linear(24, 24), activation(),
                                           nn.Linear(24, classes)))  # fmt: skip
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(150):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(x), labels).backward()
        optimiser.step()
    return network.eval()


def deep(depth: int, activation: type[nn.Module], size: int = 10) -> Callable[[], nn.Module]:
    """Return a builder of a deep network with random weights."""

    def make() -> nn.Module:
        layers = [nn.Sequential(nn.Linear(size if not number else 32, 32), activation()) for number in range(depth)]
        return nn.Sequential(*layers, nn.Linear(32, 4))

    return lambda: seeded(make, gain=2.2)


def convolutional(*middle: Callable[[], nn.Module], activation: type[nn.Module] = nn.ReLU) -> Callable[[], nn.Module]:
    """Return a builder of a convolutional network for inputs of one channel, six by six."""
    return lambda: seeded(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), *(make() for make in middle), activation(), nn.Flatten(),
                              nn.Linear(64, 3)), gain=3.0)  # fmt: skip


def linear(classes: int, size: int = 20) -> Callable[[], nn.Module]:
    return lambda: seeded(lambda: nn.Linear(size, classes), gain=3.0)


def prototypes(power: float) -> Callable[[], Network]:
    """Return a builder of a network that predicts the class of the nearest of six prototypes."""
    centres = torch.rand(6, 3, generator=torch.Generator().manual_seed(4)) * 2 - 1
    return lambda: lambda x: -torch.cdist(x, centres).pow(power) * 4


def bumps(x: Tensor) -> Tensor:
    """Return class scores that are two mixtures of bumps."""
    centres = torch.tensor([[0.5, 0.5], [-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5], [0.0, 0.0]])
    signs = torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0])
    return (torch.exp(-8 * torch.cdist(x, centres).square()) * signs).sum(1)


def rare(share: float) -> Callable[[Tensor], Tensor]:
    """Return a margin that is negative in narrow slits, into which noise falls with this probability."""
    return lambda x: torch.where(torch.remainder(23 * x[:, 0], 1.0) < share, -3.0, 3.0) + 0.3 * torch.tanh(x[:, 1])


def cliff(distance: float) -> Callable[[Tensor], Tensor]:
    """Return a margin with a gentle slope, and far out on one side a cliff behind which the other class wins."""
    return lambda x: torch.where(x[:, 0] > distance, -5.0, 4.0) + 0.2 * x[:, 1]


def shell(radius: float) -> Callable[[Tensor], Tensor]:
    return lambda x: radius - x.norm(dim=1)


def to_length(length: float) -> Callable[[Tensor], Tensor]:
    return lambda x: nn.functional.normalize(x, dim=1) * length * torch.linspace(0.2, 1.4, len(x))[:, None]


def signs(x: Tensor) -> Tensor:
    return torch.where(x > 0, 1.0, -1.0)


FAMILY_GEOMETRY = [
    *(margin(f"shell, {size} dimensions", shell(0.7), size, sigma=0.4 / math.sqrt(size), place=to_length(0.7))
      for size in (2, 10, 50)),
    margin("shell, from its centre", shell(0.7), 10, sigma=0.3, place=lambda x: 0.05 * x),
    margin("a ball that cannot be left", shell(3.0), 2),
    margin("exclusive-or", lambda x: 10 * x[:, 0] * x[:, 1]),
    margin("exclusive-or of three", lambda x: 10 * x[:, 0] * x[:, 1] * x[:, 2], 3),
    margin("product of five", lambda x: 100 * x.prod(1), 5),
    margin("checkerboard", lambda x: 3 * torch.sin(5 * x[:, 0]) * torch.sin(5 * x[:, 1])),
    margin("checkerboard of flat squares", lambda x: signs(torch.sin(5 * x)).prod(1) * (1 + x[:, 0].square() / 9),
           without_gradients=GRADIENTS),
    margin("parity of five signs", lambda x: signs(x).prod(1) * (1 + x.square().sum(1) / 9), 5,
           without_gradients=GRADIENTS),
    margin("|x|", lambda x: 4 * (x[:, 0].abs() - 0.5)),
    margin("|x| from its kink", lambda x: 4 * (0.4 - x[:, 0].abs()), place=lambda x: 0.01 * x),
    margin("even about the points", lambda x: 0.1 - x[:, 0].square(), place=lambda x: 0.0 * x + 0.01 * x),
    margin("cosine about the points", lambda x: torch.cos(6 * x[:, 0]) + 0.2, place=lambda x: 0.02 * x),
    margin("x to the third", lambda x: 20 * x[:, 0] ** 3 + 1),
    margin("x to the ninth", lambda x: 20 * x[:, 0] ** 9 + 1),
    margin("exponential", lambda x: torch.exp(6 * x[:, 0]) - 3),
    margin("exponential downwards", lambda x: 3 - torch.exp(6 * x[:, 0])),
    margin("tangent", lambda x: torch.tan(1.5 * x[:, 0].clamp(-1.04, 1.04)) + 0.5),
    margin("one over x", lambda x: 1 / (x[:, 0] + 1e-6)),
    margin("x over y", lambda x: x[:, 0] / (x[:, 1] + 1e-6)),
    margin("logarithm", lambda x: torch.log(x[:, 0].abs() + 1e-3) + 1),
    *(margin(f"spikes of {share:.0%}", rare(share), sigma=0.2, without_gradients=GRADIENTS)
      for share in (0.01, 0.05, 0.2)),
    *(margin(f"a cliff at {distance}", cliff(distance), place=lambda x: 0.1 * x, without_gradients=GRADIENTS)
      for distance in (0.3, 0.6, 0.9)),
    margin("steps", lambda x: torch.floor(4 * x[:, 0]) + 0.5 + 0.1 * x[:, 1], without_gradients=GRADIENTS),
    margin("plateaus", lambda x: torch.tanh(20 * x[:, 0]) + 0.1 * x[:, 1]),
    margin("discontinuous", lambda x: signs(x[:, 0]) * (1 + x[:, 1].abs())),
    margin("sin(20x)", lambda x: torch.sin(20 * x[:, 0]) + 0.3 * x[:, 1]),
    margin("sin(20x), mostly one class", lambda x: torch.sin(20 * x[:, 0]) + 0.8),
    margin("largest of many", lambda x: x.amax(1) - 0.9, 20),
    margin("smallest of many", lambda x: x.amin(1) + 1.1, 20),
    margin("mixture of bumps", bumps),
    margin("far from everything", lambda x: 30 + x[:, 0]),
    margin("a margin of thin tails", lambda x: torch.sigmoid(20 * x[:, 0]) - 0.05, without_gradients=GRADIENTS),
    sound("nearest prototype", prototypes(1.0), (3,)),
    sound("nearest prototype, squared", prototypes(2.0), (3,)),
    sound("perceptron trained on rings", trained("rings"), (2,)),
    sound("perceptron trained on moons", trained("moons"), (2,)),
    sound("perceptron trained on blobs", trained("blobs", 5), (2,)),
    sound("smooth perceptron trained on rings", trained("rings", 2, nn.GELU), (2,)),
    sound("smooth perceptron trained on moons", trained("moons", 2, nn.Tanh), (2,)),
    sound("deep rectified network", deep(6, nn.ReLU), (10,)),
    sound("deep smooth network", deep(4, nn.GELU), (10,)),
    sound("deep saturating network", deep(4, nn.Tanh), (10,)),
    sound("convolutional", convolutional(), (1, 6, 6)),
    sound("convolutional, smooth", convolutional(activation=nn.GELU), (1, 6, 6)),
    sound("convolutional, group norm", convolutional(lambda: nn.GroupNorm(2, 4)), (1, 6, 6)),
    sound("convolutional, batch norm with running statistics", convolutional(lambda: nn.BatchNorm2d(4)), (1, 6, 6)),
    sound("convolutional, dropout off", convolutional(lambda: nn.Dropout(0.5)), (1, 6, 6)),
    sound("LSTM with batch_first", lambda: seeded(lambda: Recurrent(nn.LSTM, batch_first=True), gain=2.5), SERIES),
    sound("GRU with batch_first", lambda: seeded(lambda: Recurrent(nn.GRU, batch_first=True), gain=2.5), SERIES),
    sound("transformer with batch_first", lambda: seeded(lambda: Attentive(batch_first=True), gain=2.0), SERIES),
    sound("transformer, normed first", lambda: seeded(
        lambda: Attentive(batch_first=True, norm_first=True), 3, 2.0), SERIES),
    *(sound(f"linear, {classes} classes", linear(classes), (20,)) for classes in (2, 5, 10)),
    sound("linear, 100 classes", linear(100), (20,), points=6),
    sound("small perceptron", small, SHAPE),
]  # fmt: skip
