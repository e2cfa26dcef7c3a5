"""The architectures and the list of networks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from studies.train.architectures import ARCHITECTURES, build
from studies.train.images import DATASETS
from studies.train.recipes import SIZES, Size, recipes
from studies.train.stored import MODEL, digest, store


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


@pytest.mark.parametrize("architecture", ["cnn", "resnet3_prelu", "vit"])
def test_a_stored_network_takes_any_number_of_images(architecture: str, tmp_path: Path) -> None:
    data = DATASETS["cifar10"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build(architecture, data, 4).eval()
        x = torch.rand(5, 3, 32, 32)
    store(network, x[:2], {"name": architecture}, tmp_path / architecture)
    opened = torch.export.load(tmp_path / architecture / MODEL).module()
    for count in (1, 2, 5):
        with torch.no_grad():
            assert torch.allclose(opened(x[:count]), network(x[:count]), atol=1e-5)
    assert [path.name for path in tmp_path.iterdir()] == [architecture]


def test_what_a_kill_left_of_a_folder_is_made_again(tmp_path: Path) -> None:
    (tmp_path / ".net.making").mkdir()
    (tmp_path / ".net.making" / "half").write_bytes(b"half")
    with torch.random.fork_rng(devices=[]):
        network = build("linear", DATASETS["mnist"], 0).eval()
    store(network, torch.zeros(2, 1, 28, 28), {}, tmp_path / "net")
    assert sorted(path.name for path in (tmp_path / "net").iterdir()) == ["meta.json", "model.pt2"]


def test_a_digest_is_of_every_weight_and_buffer() -> None:
    with torch.random.fork_rng(devices=[]):
        network = build("resnet18", DATASETS["mnist"], 1)
    before = digest(network)
    assert digest(network) == before
    for value in network.state_dict().values():
        kept = value.clone()
        value.add_(1)
        assert digest(network) != before
        value.copy_(kept)
    assert digest(network) == before


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


@pytest.mark.parametrize("size", SIZES)
def test_names_say_what_a_network_is_and_are_unique(size: Size) -> None:
    names = [recipe.name for recipe in recipes(size)]
    assert len(set(names)) == len(names)
    for recipe in recipes(size):
        assert recipe.architecture in ARCHITECTURES
        assert recipe.name.startswith(f"{recipe.dataset}_{recipe.architecture}_{recipe.way.name}")
        assert re.fullmatch(r"[a-z0-9_.-]+", recipe.name)
    assert {"mnist_cnn_gradnorm_1e-3", "mnist_linear_plain", "mnist_cnn_pgd_0.15"} <= set(names)


@pytest.mark.parametrize("size", SIZES)
def test_the_studies_have_their_networks(size: Size) -> None:
    """Each paper asks for ways of training: of one architecture at least, on each of two data sets."""
    ways = {dataset: {one.way.name for one in recipes(size) if one.dataset == dataset} for dataset in DATASETS}
    for dataset in ("mnist", "cifar10"):
        known = {"plain", "gradnorm", "gaussian", "fgsm", "pgd", "trades", "mart", "alp", "clp", "sigmoid"}
        assert ways[dataset] == known
        for architecture in ("linear", "cnn", "lenet_tanh", "vit"):
            assert any((one.dataset, one.architecture) == (dataset, architecture) for one in recipes(size))
    strengths = sum(one.name.startswith("cifar10_resnet18_gradnorm_") for one in recipes(size))
    assert strengths == {"cpu": 1, "paper": 3}[size]
