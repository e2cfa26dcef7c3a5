"""Networks without part in the making of the attacks, trained from fixed seeds in a few minutes."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from nearest_data import read
from torch import Tensor, nn

BATCH = 128
TESTED = 2000
WIDTH = 256
PGD_STEPS = 7


@dataclass(frozen=True)
class Recipe:
    """Maker and training of a network; `radius` is that of the Linf ball of adversarial training."""

    dataset: str
    make: Callable[[], nn.Module]
    images: int
    rounds: int
    radius: float = 0.0


class Attention(nn.Module):
    """A block of a vision transformer: attention and a GELU perceptron, each after a LayerNorm (Dosovitskiy 2021)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.mix(self.before(x)).chunk(3, dim=2)
        )
        weights = (query @ key.transpose(2, 3) / query.shape[-1] ** 0.5).softmax(dim=-1)
        x = x + self.out((weights @ value).transpose(1, 2).flatten(2))
        return x + self.dense(self.after(x))


class Transformer(nn.Module):
    """Patches, places, blocks of attention, the mean of all patches."""

    def __init__(self, channels: int, side: int, patch: int, width: int = 48, depth: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, width, patch, patch)
        self.places = nn.Parameter(0.02 * torch.randn(1, (side // patch) ** 2, width))
        self.blocks = nn.Sequential(*(Attention(width, 4) for _ in range(depth)), nn.LayerNorm(width))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.patches(x).flatten(2).transpose(1, 2) + self.places).mean(dim=1))


def perceptron(*widths: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return layers of `widths`, the first that of the input, and ten classes."""
    layers = [part for wide, out in itertools.pairwise(widths) for part in (nn.Linear(wide, out), activation())]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], 10))


def small_cnn() -> nn.Sequential:
    """Return two convolutions, a maximum over places, two dense layers; for MNIST."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(32 * 49, 100), nn.ReLU(), nn.Linear(100, 10),
    )  # fmt: skip


def normed_cnn() -> nn.Sequential:
    """Return three convolutions with batch normalisation; for CIFAR-10."""
    widths = [3, 24, 48, 64]
    blocks = [
        part
        for inside, outside in itertools.pairwise(widths)
        for part in (nn.Conv2d(inside, outside, 3, 2, 1), nn.BatchNorm2d(outside), nn.ReLU())
    ]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(64 * 16, 10))


def tiny_cnn(activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return two convolutions with strides and a dense layer, for MNIST and images of its size."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, 2, 2), activation(), nn.Conv2d(8, 16, 5, 2, 2), activation(), nn.Flatten(),
        nn.Linear(16 * 49, 10),
    )  # fmt: skip


def pooled_cnn(channels: int, side: int, activation: type[nn.Module] = nn.ReLU) -> nn.Sequential:
    """Return two convolutions, each with a maximum over places, and two dense layers."""
    return nn.Sequential(
        nn.Conv2d(channels, 12, 3, 1, 1), activation(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, 1, 1), activation(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(24 * (side // 4) ** 2, 48), activation(), nn.Linear(48, 10),
    )  # fmt: skip


RECIPES = {
    "mnist_relu_2x256": Recipe("mnist", lambda: perceptron(784, *[WIDTH] * 2), 60_000, 3),
    "mnist_relu_4x256": Recipe("mnist", lambda: perceptron(784, *[WIDTH] * 4), 60_000, 3),
    "mnist_relu_6x256": Recipe("mnist", lambda: perceptron(784, *[WIDTH] * 6), 60_000, 3),
    "mnist_gelu_3x256": Recipe("mnist", lambda: perceptron(784, *[WIDTH] * 3, activation=nn.GELU), 60_000, 3),
    "mnist_tanh_3x256": Recipe("mnist", lambda: perceptron(784, *[WIDTH] * 3, activation=nn.Tanh), 60_000, 3),
    "mnist_cnn": Recipe("mnist", small_cnn, 30_000, 3),
    "mnist_cnn_adversarial": Recipe("mnist", small_cnn, 12_000, 5, radius=0.15),
    "mnist_transformer": Recipe("mnist", lambda: Transformer(1, 28, 7), 40_000, 5),
    "cifar10_relu_4x256": Recipe("cifar10", lambda: perceptron(3072, *[WIDTH] * 4), 12_000, 6),
    "cifar10_cnn": Recipe("cifar10", normed_cnn, 12_000, 6),
    "digits_relu_64_32": Recipe("digits", lambda: perceptron(64, 64, 32), 1000, 60),
    "fashion_cnn": Recipe("fashion", tiny_cnn, 600, 40),
    "aside_digits_relu_4x32": Recipe("digits", lambda: perceptron(64, *[32] * 4), 1000, 60),
    "aside_mnist_relu_1x64": Recipe("mnist", lambda: perceptron(784, 64), 20_000, 5),
    "aside_mnist_relu_5x64": Recipe("mnist", lambda: perceptron(784, *[64] * 5), 20_000, 5),
    "aside_mnist_sigmoid_3x100": Recipe("mnist", lambda: perceptron(784, *[100] * 3, activation=nn.Sigmoid), 30_000, 8),
    "aside_mnist_cnn_adversarial": Recipe("mnist", tiny_cnn, 10_000, 5, radius=0.1),
    "aside_mnist_cnn_pooled": Recipe("mnist", lambda: pooled_cnn(1, 28), 10_000, 3),
    "aside_mnist_transformer": Recipe("mnist", lambda: Transformer(1, 28, 7, width=32, depth=3), 20_000, 5),
    "aside_fashion_relu_3x64": Recipe("fashion", lambda: perceptron(784, 64, 64, 64), 600, 40),
    "aside_fashion_cnn_prelu": Recipe("fashion", lambda: tiny_cnn(nn.PReLU), 600, 40),
    "aside_cifar10_cnn_silu": Recipe("cifar10", lambda: pooled_cnn(3, 32, nn.SiLU), 10_000, 5),
}
"""Recipes by name; the place of a name is its seed. No attack was tuned on those that are set `aside`."""


def train_all(data: Path, out: Path, names: list[str]) -> None:
    """Train, save as `model.pt2` with `meta.json` in a folder each, and print the accuracy on test images."""
    for name in names:
        recipe, start = RECIPES[name], time.perf_counter()
        torch.manual_seed(list(RECIPES).index(name))
        network = train(recipe, *read(data, recipe.dataset, "train", recipe.images))
        x, y = read(data, recipe.dataset, "test", TESTED)
        with torch.no_grad():
            accuracy = float((network(x).argmax(dim=1) == y).float().mean())
        save(network, x[:2], out / name, {"dataset": recipe.dataset, "accuracy": accuracy, "radius": recipe.radius})
        print(f"{name}: {accuracy:.1%} of {len(x)} test images right, {time.perf_counter() - start:.0f} s", flush=True)


def train(recipe: Recipe, x: Tensor, y: Tensor) -> nn.Module:
    """Train on cross-entropy by Adam with a rate that falls to zero, on adversarial examples if there is a radius."""
    network = recipe.make().train()
    steps = recipe.rounds * len(x.split(BATCH))
    optimiser = torch.optim.Adam(network.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=steps)
    for number in range(recipe.rounds):
        radius = recipe.radius * min(1.0, (number + 1) / (recipe.rounds - 1))  # grows, or training may not begin
        for rows in torch.randperm(len(x)).split(BATCH):
            inputs = ascend(network, x[rows], y[rows], radius) if radius else x[rows]
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(inputs), y[rows]).backward()
            optimiser.step()
            schedule.step()
    return network.eval()


def ascend(network: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """Ascend the loss by projected gradients in the Linf ball, from a random start (Madry et al., ICLR 2018)."""
    moved = (x + radius * (2 * torch.rand_like(x) - 1)).clamp(0, 1)
    for _ in range(PGD_STEPS):
        moved.requires_grad_(True)
        (slope,) = torch.autograd.grad(nn.functional.cross_entropy(network(moved), y), moved)
        stepped = moved.detach() + 2.5 * radius / PGD_STEPS * slope.sign()
        moved = torch.minimum(torch.maximum(stepped, x - radius), x + radius).clamp(0, 1)
    return moved


def save(network: nn.Module, example: Tensor, folder: Path, meta: dict[str, object]) -> None:
    """Export the network with a free number of rows."""
    folder.mkdir(parents=True, exist_ok=True)
    shapes = ({0: torch.export.Dim("rows")},)
    torch.export.save(torch.export.export(network, (example,), dynamic_shapes=shapes), folder / "model.pt2")
    (folder / "meta.json").write_text(json.dumps({"name": folder.name, **meta}, indent=1) + "\n", encoding="utf-8")
