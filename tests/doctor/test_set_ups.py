"""Trained networks in correct set-ups raise no alarm.

What is said of mistakes is in `test_preprocessing.py` and `test_labels.py`, and how many of them are noticed with
trained networks `research/benchmarks/doctor_trained.py` counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sklearn import datasets
from torch import Tensor, nn

import brittle
from brittle.data import array_points
from brittle.scores import LogitMargin

Split = tuple[Tensor, Tensor, Tensor, Tensor]
"""Points and labels for training, and for the checks."""

ALL = tuple(range(10))


def train(network: nn.Module, x: Tensor, y: Tensor, steps: int) -> nn.Module:
    draw = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(network.train().parameters(), 2e-3)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,), generator=draw)
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
        optimiser.step()
    return network.eval().requires_grad_(False)


def dense(features: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, classes))


def convolutions(classes: int) -> nn.Module:
    layers = [nn.Conv2d(1, 16, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, classes))


def split(x: Tensor, y: Tensor) -> Split:
    train_rows, test_rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(0)).tensor_split(2)
    return x[train_rows], y[train_rows], x[test_rows], y[test_rows]


def digits(*classes: int, flat: bool = False) -> Split:
    """Return the digits of scikit-learn from 0 to 1, as images or flat."""
    data: Any = datasets.load_digits()
    x, y = torch.tensor(data.images, dtype=torch.float32)[:, None] / 16, torch.tensor(data.target)
    rows = torch.isin(y, torch.tensor(classes))
    x = x[rows].flatten(1) if flat else x[rows]
    return split(x, torch.searchsorted(torch.tensor(classes), y[rows]))


def table(load: Callable[[], Any]) -> Split:
    data = load()
    return split(torch.tensor(data.data, dtype=torch.float32), torch.tensor(data.target))


SET_UPS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Split], int, bool]] = {
    "digits, convolutions": (lambda: convolutions(10), lambda: digits(*ALL), 300, False),
    "digits, flat": (lambda: dense(64, 10), lambda: digits(*ALL, flat=True), 300, False),
    "digits, weak and flat": (lambda: nn.Linear(64, 10), lambda: digits(*ALL, flat=True), 40, False),
    "digits, declared": (lambda: convolutions(10), lambda: digits(*ALL), 300, True),
    "digits 0, 1, 8": (lambda: convolutions(3), lambda: digits(0, 1, 8), 150, False),
    "digits 4, 9, weak": (lambda: nn.Linear(64, 2), lambda: digits(4, 9, flat=True), 12, False),
    "breast cancer": (lambda: dense(30, 2), lambda: table(datasets.load_breast_cancer), 200, True),
    "wine": (lambda: dense(13, 3), lambda: table(datasets.load_wine), 200, True),
}
"""The network, the points, the steps of its training, and whether mean and std are declared."""


@pytest.mark.every_other
@pytest.mark.parametrize("name", SET_UPS)
def test_a_healthy_set_up_raises_no_alarm(name: str) -> None:
    """Warnings are errors here; few points, and 30% random labels, raise no alarm either.

    Labels moved by one and values inverted are noticed.
    """
    make, load, steps, declared = SET_UPS[name]
    torch.manual_seed(0)
    x, y, test_x, test_y = load()
    images, classes, scale = x.dim() == 4, int(y.max()) + 1, dict[str, Any]()
    if declared:
        mean, std = (statistic.mean() if images else statistic for statistic in (x.mean(0), x.std(0).clamp(min=1e-6)))
        scale, x = {"mean": mean.tolist(), "std": std.tolist()}, (x - mean) / std
    bounds: Any = "none" if declared and not images else (0.0, 1.0)
    classifier = brittle.Classifier(train(make(), x, y, steps), bounds=bounds, **scale)

    def warnings(x: Tensor, labels: Tensor) -> tuple[Any, ...]:
        points = array_points(x, labels, layout="nchw" if images else None, bounds=bounds)
        return brittle.score(classifier, points, [LogitMargin()]).record.warnings

    draw = torch.Generator().manual_seed(2)
    random_labels = torch.randint(0, classes, test_y.shape, generator=draw)
    noisy = torch.where(torch.rand(len(test_y), generator=draw) < 0.3, random_labels, test_y)
    assert warnings(test_x, noisy) == ()
    for count in (8, 64):
        assert warnings(test_x[:count], test_y[:count]) == ()
    if classes > 2:
        with pytest.warns(brittle.BrittleWarning):
            assert warnings(test_x, (test_y + 1) % classes)
    if classes > 2 and bounds != "none":
        with pytest.warns(brittle.BrittleWarning):
            assert warnings(1 - test_x, test_y)
