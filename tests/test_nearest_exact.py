"""Exact distances of small networks of rectifiers, and the search against them."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from helpers.documents import ROOT
from scipy.optimize import linprog
from torch import Tensor, nn

import brittle

FOLDER = ROOT / "benchmarks" / "nearest"


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module beside the script, for as long as a test lasts."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module("nearest_exact")
    for name in set(sys.modules) - before:
        if name.startswith("nearest_"):
            sys.modules.pop(name)


def rectifiers(*widths: int, seed: int) -> nn.Sequential:
    """A perceptron of random weights, lively at every depth."""
    generator = torch.Generator().manual_seed(seed)
    linear = [nn.Linear(*pair) for pair in itertools.pairwise(widths)]
    with torch.no_grad():
        for layer in linear:
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * (2 / layer.in_features) ** 0.5)
            layer.bias.copy_(0.3 * torch.randn(layer.bias.shape, generator=generator))
    parts: list[nn.Module] = [part for layer in linear for part in (layer, nn.ReLU())]
    return nn.Sequential(*parts[:-1]).requires_grad_(False)


def points(network: nn.Sequential, count: int, seed: int) -> Tensor:
    return torch.rand(count, network[0].in_features, generator=torch.Generator().manual_seed(seed))  # type: ignore[arg-type]


def by_pattern(network: nn.Sequential, x: np.ndarray, own: int) -> float:
    """The distance by a linear program for each pattern of the one hidden layer, and each other class."""
    inner, outer = (
        (part.weight.double().numpy(), part.bias.double().numpy()) for part in network if isinstance(part, nn.Linear)
    )
    size, nearest = len(x), np.inf
    ball = np.block([[np.eye(size), -np.ones((size, 1))], [-np.eye(size), -np.ones((size, 1))]])
    for pattern in itertools.product((0.0, 1.0), repeat=len(inner[1])):
        active = np.array(pattern)
        side = (1 - 2 * active)[:, None] * inner[0]
        for other in set(range(len(outer[1]))) - {own}:
            lead = outer[0][own] - outer[0][other]
            rows = np.vstack([side, (lead * active) @ inner[0]])
            limits = [*((2 * active - 1) * inner[1]), outer[1][other] - outer[1][own] - (lead * active) @ inner[1]]
            matrix = np.vstack([ball, np.hstack([rows, np.zeros((len(rows), 1))])])
            bounds = [*[(0, 1)] * size, (0, None)]
            found = linprog(np.eye(size + 1)[size], matrix, [*x, *-x, *limits], bounds=bounds)
            nearest = min(nearest, found.fun if found.success else np.inf)
    return nearest


def exact(pieces: Any, network: nn.Sequential, x: Tensor, found: brittle.NearestPoint) -> np.ndarray:
    """The exact distances of points at which something was found."""
    rows = zip(x.double().numpy(), found.distance.tolist(), found.predicted.tolist(), strict=True)
    truths = [pieces.exact_distance(pieces.layers_of(network), *row) for row in rows]
    assert all(truth.proved for truth in truths)
    return np.array([truth.distance for truth in truths])


def test_the_mixed_integer_program_agrees_with_a_program_for_each_pattern(pieces: Any) -> None:
    network = rectifiers(4, 5, 3, seed=0)
    x = points(network, 4, seed=1)
    own = network(x).argmax(dim=1).tolist()
    truth = np.array([by_pattern(network, point, j) for point, j in zip(x.double().numpy(), own, strict=True)])
    found = brittle.nearest(brittle.Classifier(network, bounds=(0, 1)), x, effort="fast")
    assert np.isfinite(truth).sum() >= 2
    known = np.isfinite(truth)
    answer = exact(pieces, network, x[known], _only(found, torch.from_numpy(known)))
    # HiGHS lets constraints be missed by 1e-7, and which side it ends on is the processor's.
    assert answer == pytest.approx(truth[known], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("widths", "seed"), [((8, 8, 8, 8, 4), 3), ((12, 10, 10, 4), 5)])
def test_the_search_ends_at_the_exact_distance(pieces: Any, widths: tuple[int, ...], seed: int) -> None:
    """On boundaries of many pieces, where one start, or steps without momentum, end a tenth farther away."""
    network = rectifiers(*widths, seed=seed)
    x = points(network, 6, seed)
    found = brittle.nearest(brittle.Classifier(network, bounds=(0, 1)), x)
    known = found.predicted >= 0
    assert known.sum() >= 4
    found = _only(found, known)
    excess = found.distance.numpy() / exact(pieces, network, x[known], found) - 1
    assert excess.min() > -1e-5
    assert excess.max() < 0.05


def _only(found: brittle.NearestPoint, rows: Tensor) -> Any:
    """The distances and classes of some points."""
    return type("Found", (), {"distance": found.distance[rows], "predicted": found.predicted[rows]})
