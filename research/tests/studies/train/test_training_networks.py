"""The architectures and the list of networks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from studies.train.architectures import build
from studies.train.every import tasks_of
from studies.train.images import DATASETS, read
from studies.train.recipes import recipes


@pytest.mark.parametrize(
    ("architecture", "dataset", "width", "weights"),
    [
        ("linear", "mnist", 0, 7_850),
        ("cnn", "mnist", 10, 21_840),
        ("lenet_tanh", "mnist", 6, 61_706),
        ("resnet18", "cifar10", 64, 11_173_962),
        ("resnet18", "cifar100", 64, 11_220_132),
    ],
)
def test_published_architectures_have_their_number_of_weights(
    architecture: str, dataset: str, width: int, weights: int
) -> None:
    """Counted by hand: 260 + 5,020 + 16,050 + 510 for the network of Han et al., LeNet-5 with full connections."""
    with torch.random.fork_rng(devices=[]):
        network = build(architecture, DATASETS[dataset], width)
    assert sum(parameter.numel() for parameter in network.parameters()) == weights


@pytest.mark.parametrize("dataset", DATASETS)
def test_an_image_of_the_mean_is_zero_inside(dataset: str) -> None:
    data = DATASETS[dataset]
    with torch.random.fork_rng(devices=[]):
        network = build("linear", data, 0)
    mean = torch.tensor(data.mean)[None, :, None, None].expand(1, -1, data.side, data.side)
    [last] = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]
    assert torch.allclose(network(mean)[0], last.bias, atol=1e-5)
    moved = mean + torch.tensor(data.deviation)[None, :, None, None]
    assert torch.allclose(network(moved)[0], last.bias + last.weight.sum(dim=1), atol=1e-4)


@pytest.mark.parametrize("size", ["cpu", "paper"])
def test_networks_behind_claims_are_trained_from_several_seeds(size: Literal["cpu", "paper"]) -> None:
    """No two have one name; the first seed trains all of them, under the names that they have alone."""
    tasks = tasks_of(recipes(size), 5, 3)
    assert len({task.name for task in tasks}) == len(tasks)
    assert [task.name for task in tasks if not task.repeat] == [recipe.name for recipe in recipes(size)]
    again = [(task.recipe.way.name, task.seed) for task in tasks if task.repeat]
    assert ("pgd", 6) in again
    assert ("pgd", 7) in again
    assert "plain" not in dict(again)


def test_undivided_images_are_divided_by_row(tmp_path: Path) -> None:
    """Every third is for tests; or all of them are, and channels come last."""
    images = np.arange(12, dtype=np.uint8)[:, None, None, None] * np.ones((1, 4, 4, 3), dtype=np.uint8)
    np.savez(tmp_path / "x.npz", images=images, labels=np.arange(12))
    divided = replace(DATASETS["fashion_mnist_900"], channels=3)
    (x, y), (_, training_labels) = (read(tmp_path, divided, split, None) for split in ("test", "train"))
    assert y.tolist() == [0, 3, 6, 9]
    assert training_labels.tolist() == [1, 2, 4, 5, 7, 8, 10, 11]
    assert torch.equal((255 * x[:, 2, 1, 3]).round(), y.float())
    assert read(tmp_path, divided, "train", 3)[1].tolist() == [1, 2, 4]
    assert len(read(tmp_path, DATASETS["cifar10_lossless_854"], "test", None)[1]) == 12
