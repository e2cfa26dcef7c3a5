"""Whether mistakes in how a network is given are noticed, and healthy set-ups raise no alarm; prints both as tables.

    PYTHONPATH=tests python -m checks.set_ups --shared FOLDER

FOLDER holds `data` and `models`. Networks by others and networks that are trained here within seconds are scored as
they are meant to be, and with every mistake of `helpers.set_ups` that costs a tenth of the labels.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from helpers import set_ups
from helpers.set_ups import MISTAKES, VARIATIONS, SetUp, convolutions, dense, split, standardised, train, wrong_ones
from pyarrow import csv
from torch import Tensor, nn

from brittle.data import open_points

COST, POINTS, TRAINED_ON = 0.1, 300, 4000
"""Share of the labels that a mistake costs, points that are scored, and images that a network is trained on."""

NOTICED = 0.93
"""Share of the mistakes that have to be noticed."""

NAMING = {"preprocessing", "accuracy_suspicious"}
"""Codes of what labels show."""

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
            flat = partial(_of_flat, network, x.shape[1:])
            yield SetUp(f"{name}, flat", flat, x.flatten(1), y, image=tuple(x.shape[1:]))


def _of_flat(network: nn.Module, shape: Sequence[int], x: Tensor) -> Tensor:
    return network(x.view(-1, *shape))


def trained_here(shared: Path) -> Iterator[SetUp]:
    data = shared / "data"
    for name, place, steps in (("CIFAR-10", "cifar10", 400), ("X-rays", "pneumoniamnist/pneumoniamnist.npz", 150)):
        torch.manual_seed(2)
        (x, y), test = read(data / place, "train", TRAINED_ON), read(data / place, "test", POINTS)
        mean, std, classes = x.mean((0, 2, 3)), x.std((0, 2, 3)), int(y.max()) + 1
        given = (x - mean.view(-1, 1, 1)) / std.view(-1, 1, 1)
        network = train(convolutions(x.shape[1], x.shape[2], classes), given, y, steps)
        yield SetUp(f"{name}, declared", network, *test, mean=tuple(mean.tolist()), std=tuple(std.tolist()))
        yield SetUp(f"{name}, dense", train(dense(x[0].numel(), classes), x, y, 2 * steps), *test)
    x, y, test_x, test_y = split(*read(data / "fashion_mnist_900", "sprite900", 900), 2 / 3)
    yield SetUp("clothes", train(convolutions(1, 28, 10), x, y, 150), test_x, test_y)
    read_table = csv.read_csv(data / "census" / "census.csv").slice(0, 4000)
    columns = [column.to_numpy() for column in read_table.columns]
    table = torch.tensor(
        np.stack([column if column.dtype != object else codes(column) for column in columns], 1)
    ).float()
    yield standardised("census", *split(table[:, :-1], table[:, -1].long(), 0.8))


def codes(column: np.ndarray) -> np.ndarray:
    """The places of words in the order of the alphabet."""
    return np.unique(column, return_inverse=True)[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Score all; 0 where `NOTICED` of the mistakes are noticed, and no healthy set-up raises an alarm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shared", type=Path, required=True)
    shared = parser.parse_args(arguments).shared
    torch.set_num_threads(1)
    made, noticed, named, healthy, alarms = Counter[str](), Counter[str](), Counter[str](), 0, 0
    for it in chain(set_ups.of_digits(), set_ups.of_tables(), trained_here(shared), by_others(shared)):
        print(f"{it.name}: {it.accuracy:.1%} of {len(it.y)}", flush=True)
        for name, vary in VARIATIONS.items():
            said = vary(it).said()
            healthy, alarms = healthy + 1, alarms + bool(said)
            for sentence in said.values():
                print(f"    ALARM, {name}: {sentence}")
        for mistake, wrong in wrong_ones(it, COST):
            said = wrong.said()
            made[mistake] += 1
            noticed[mistake] += bool(said)
            named[mistake] += bool(said.keys() & NAMING)
            print(
                f"    {mistake}, {wrong.accuracy:.1%}: {', '.join(said) or 'NOTHING'}; {said.get('preprocessing', '')}",
                flush=True,
            )
    print(f"\n{'mistake':<34}{'made':>6}{'noticed':>9}{'named':>7}")
    for mistake in MISTAKES:
        print(f"{mistake:<34}{made[mistake]:>6}{noticed[mistake]:>9}{named[mistake]:>7}")
    print(f"{'all':<34}{made.total():>6}{noticed.total():>9}{named.total():>7}")
    print(f"\n{healthy} healthy set-ups, {alarms} with an alarm")
    return int(alarms > 0 or noticed.total() < NOTICED * made.total())


if __name__ == "__main__":
    sys.exit(main())
