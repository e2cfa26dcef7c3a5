"""The architectures and the list of networks."""

from __future__ import annotations

import pytest
import torch

from studies.train.architectures import build
from studies.train.images import DATASETS


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
def test_published_architectures_have_as_many_weights_as_published(
    architecture: str, dataset: str, width: int, weights: int
) -> None:
    """Counted by hand: 260 + 5,020 + 16,050 + 510 for the network of Han et al., LeNet-5 with full connections."""
    with torch.random.fork_rng(devices=[]):
        network = build(architecture, DATASETS[dataset], width)
    assert sum(one.numel() for one in network.parameters()) == weights


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
