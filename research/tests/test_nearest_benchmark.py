"""The rivals of the benchmark `nearest` where the nearest input is known, its judge, exact distances by programs."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.attacked import linear_margin
from helpers.bounded_networks import certified
from helpers.documents import ROOT
from torch import nn

import brittle

FOLDER = ROOT / "research" / "benchmarks" / "nearest"
PIECES = ("nearest_data", "nearest_rivals", "nearest_apgd", "nearest_foolbox", "nearest_rows", "nearest_exact")
PASSES = 400


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Return the modules beside the script."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield {name: importlib.import_module(name) for name in PIECES}
    for name in [name for name in sys.modules if name.startswith("nearest_")]:
        sys.modules.pop(name)


def linear(classes: int) -> tuple[torch.nn.Linear, torch.Tensor, torch.Tensor]:
    """Return a linear network, points whose nearest other class is far inside [0, 1], and their classes."""
    generator = torch.Generator().manual_seed(0)
    network = torch.nn.Linear(12, classes)
    with torch.no_grad():
        network.weight.copy_(torch.randn(classes, 12, generator=generator))
        network.bias.copy_(-network.weight.sum(dim=1) / 2)
    network.requires_grad_(False)
    x = 0.5 + 0.1 * torch.randn(8, 12, generator=generator)
    return network, x, network(x).argmax(dim=1)


@pytest.mark.parametrize(
    ("name", "norm", "classes"),
    [
        ("fmn", "l2", 4),
        ("fmn_wide", "linf", 4),
        ("fmn_targets", "l2", 4),
        ("apgd", "linf", 2),  # with more classes the gradient of the cross-entropy points between them
        ("apgd", "l2", 2),
        ("ddn", "l2", 2),
    ],
)
def test_rivals_find_the_nearest_input_of_a_linear_network(
    pieces: dict[str, Any], name: str, norm: str, classes: int
) -> None:
    network, x, labels = linear(classes)
    rows = pieces["nearest_rows"]
    counted = rows.Counted(network)
    points = rows.RIVALS[name][0](counted, x, labels, norm, PASSES)
    distances = rows.judge(rows.Subject("linear", Path(), network, x, labels), points, norm).numpy()
    truth = linear_margin(network, x, norm).numpy()
    assert (distances >= truth * (1 - 1e-5)).all()
    assert (distances <= truth * 1.02).all()
    assert PASSES <= counted.passes / len(x) <= 1.25 * PASSES


def test_the_judge_trusts_nobody(pieces: dict[str, Any]) -> None:
    """Check that inputs of the same class have no distance, that the box cuts inputs, and that rounding is forgiven."""
    network = torch.nn.Linear(1, 2)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.0], [1.0]]))
        network.bias.copy_(torch.tensor([0.75, 0.0]))
    network.requires_grad_(False)
    rows, x = pieces["nearest_rows"], torch.full((4, 1), 0.25)
    points = torch.tensor([[0.5], [3.0], [0.9], [0.75]])
    distances = rows.judge(rows.Subject("step", Path(), network, x, torch.zeros(4, dtype=torch.long)), points, "l2")
    assert distances[0] == torch.inf
    assert distances[1] == 0.75
    assert distances[2] == pytest.approx(0.65)
    assert 0.5 < distances[3] < 0.5 * 1.0011


# Exact distances of small networks of rectifiers, and the search against them.


def rectifiers(*widths: int, seed: int) -> nn.Sequential:
    """Return a perceptron of random weights, lively at every depth."""
    generator = torch.Generator().manual_seed(seed)
    linear = [nn.Linear(*pair) for pair in itertools.pairwise(widths)]
    with torch.no_grad():
        for layer in linear:
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * (2 / layer.in_features) ** 0.5)
            layer.bias.copy_(0.3 * torch.randn(layer.bias.shape, generator=generator))
    parts: list[nn.Module] = [part for layer in linear for part in (layer, nn.ReLU())]
    return nn.Sequential(*parts[:-1]).requires_grad_(False)


def test_the_search_ends_at_the_exact_distance(pieces: dict[str, Any]) -> None:
    """On boundaries of many pieces, where one start, or steps without momentum, end a tenth farther away.

    Nothing is found nearer than the program says, and no certified radius is beyond it.
    """
    network, exact = rectifiers(12, 10, 10, 4, seed=5), pieces["nearest_exact"]
    x = torch.rand(6, 12, generator=torch.Generator().manual_seed(5))
    nearest = brittle.nearest(brittle.Classifier(network, bounds=(0, 1)), x, norm="linf")
    has_point = nearest.predicted >= 0
    assert has_point.sum() >= 4
    rows = zip(
        x[has_point].double().numpy(),
        nearest.distance[has_point].tolist(),
        nearest.predicted[has_point].tolist(),
        strict=True,
    )
    truths = [exact.exact_distance(exact.layers_of(network), *row) for row in rows]
    assert all(truth.proved for truth in truths)
    distance = np.array([truth.distance for truth in truths])
    radius = certified(brittle.Classifier(network, bounds=(0, 1)), x).radius[has_point].numpy()
    assert (radius <= distance * (1 + 1e-6)).all()
    assert (radius > 0.5 * distance).any()
    excess = nearest.distance[has_point].numpy() / distance - 1
    assert excess.min() > -1e-5
    assert excess.max() < 0.05
