"""Whether mistakes in how a network is given are noticed, and healthy set-ups raise no alarm; prints both as tables.

    PYTHONPATH=tests python -m checks.set_ups --shared ../shared

FOLDER holds `data` and `models`. Networks by others and networks that are trained here within seconds are scored as
they are meant to be, and with every mistake of `helpers.set_ups` that costs a tenth of the labels.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch
from helpers import set_ups
from helpers.set_ups import MISTAKES, VARIATIONS, SetUp, convolutions, dense, standardised, train, wrong
from torch import Tensor, nn

from brittle.data import open_points

COST, POINTS, TRAINED_ON = 0.1, 300, 4000

NETWORKS = {
    "pt_abc_cifar_cnn_a_mix": "cifar10",
    "pt_convex_cifar_small_l2_36px": "cifar10",
    "vnn21_cifar10_resnet2b": "cifar10",
    "vnn_oval21_cifar_base": "cifar10",
    "vnn23_vit_ibp_3_3_8": "cifar10",
    "pt_fmn_mnist_cnn": "mnist",
    "vnn21_eran_mnist_sigmoid_6x200": "mnist",
    "vnn_mnistfc_256x2": "mnist",
}
"""Networks by others, and their data."""

FLAT = ("vnn_mnistfc_256x2", "pt_convex_cifar_small_l2_36px")
"""Those that are given flat points, too."""


class Flat(nn.Module):
    """A network of images, for flat points."""

    def __init__(self, network: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.network, self.shape = network, shape

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x.view(-1, *self.shape))


def read(path: Path, split: str | None, most: int) -> tuple[Tensor, Tensor]:
    points = open_points(path, split=split, limit=most, scale_uint8=path.suffix == ".npz")
    batch = next(iter(points.batches(most)))
    return batch.inputs, torch.tensor(batch.labels)


def by_others(shared: Path) -> Iterator[SetUp]:
    for name, data in NETWORKS.items():
        x, y = read(shared / "data" / data, "test", POINTS)
        network = torch.export.load(shared / "models" / name / "model.pt2").module()
        yield SetUp(name, network, x, y)
        if name in FLAT:
            yield SetUp(f"{name}, flat", Flat(network, x.shape[1:]), x.flatten(1), y, image=tuple(x.shape[1:]))


def trained_here(shared: Path) -> Iterator[SetUp]:
    torch.manual_seed(2)
    data = shared / "data"
    for name, place, share in (("CIFAR-10", "cifar10", 300), ("X-rays", "pneumoniamnist/pneumoniamnist.npz", 150)):
        (x, y), test = read(data / place, "train", TRAINED_ON), read(data / place, "test", 624)
        test = tuple(part[torch.randperm(len(test[0]))[:POINTS]] for part in test) if False else test
        mean, std = x.mean((0, 2, 3)), x.std((0, 2, 3))
        declared = {"mean": tuple(mean.tolist()), "std": tuple(std.tolist())}
        given = (x - mean.view(-1, 1, 1)) / std.view(-1, 1, 1)
        network = train(convolutions(x.shape[1], x.shape[2], int(y.max()) + 1), given, y, share)
        yield SetUp(f"{name}, declared", network, *test, **declared)
        network = train(dense(x[0].numel(), int(y.max()) + 1), x.flatten(1), y, share // 2)
        yield SetUp(f"{name}, dense", network, *test)
    x, y = read(data / "fashion_mnist_900", None, 900)
    x, y, *test = set_ups.split(x, y, 2 / 3)
    yield SetUp("clothes", train(convolutions(1, 28, 10), x, y, 150), *test)
    points = open_points(data / "census" / "census.csv", labels="income-over-50k", limit=4000)
    x, y = points.inputs, torch.tensor(points.labels)
    yield standardised("census", *set_ups.split(x, y, 0.8))
