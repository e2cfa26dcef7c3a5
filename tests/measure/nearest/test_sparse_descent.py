"""The nearest input in L1 against the exact one, from linear programs over all pieces of a small network."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from helpers.attacked import run
from scipy.optimize import linprog
from torch import nn

import brittle

SIZE, UNITS, CLASSES = 5, 6, 3


def network(seed: int) -> nn.Sequential:
    """Return a network of one hidden layer, whose `UNITS` units cut the inputs into at most `2^UNITS` pieces."""
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Linear(SIZE, UNITS), nn.ReLU(), nn.Linear(UNITS, CLASSES)).double().eval()
    for parameter in layers.parameters():
        nn.init.normal_(parameter)
    return layers


def exact(layers: nn.Sequential, point: np.ndarray) -> float:
    """Return the smallest `sum |d|` with `point + d` in [0, 1] and another class ahead, over all signs of the units."""
    hidden: Any = layers[0]
    output: Any = layers[2]
    weight, bias = hidden.weight.detach().numpy(), hidden.bias.detach().numpy()
    out, shift = output.weight.detach().numpy(), output.bias.detach().numpy()
    logits = layers(torch.from_numpy(point)[None])[0].detach().numpy()
    label = int(logits.argmax())
    limits = [(0, 1 - value) for value in point] + [(0, value) for value in point]
    best = np.inf
    for on in itertools.product((0.0, 1.0), repeat=UNITS):
        signs = 2 * np.array(on) - 1
        inside = -signs[:, None] * weight, signs * (weight @ point + bias)
        for rival in set(range(CLASSES)) - {label}:
            lead = (out[label] - out[rival]) * np.array(on)
            rows = np.vstack((inside[0], lead @ weight))
            ends = np.append(inside[1], -(lead @ (weight @ point + bias) + shift[label] - shift[rival]))
            solution = linprog([1.0] * 2 * SIZE, np.hstack((rows, -rows)), ends, bounds=limits)
            best = min(best, solution.fun if solution.success else np.inf)
    return best


def test_the_nearest_input_in_l1_is_found_on_small_networks() -> None:
    ratios = []
    for seed in range(2):
        layers = network(seed)
        points = torch.rand(2, SIZE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        distances = run(brittle.Classifier(layers, bounds=(0, 1)), points, norm="l1").distance.numpy()
        truth = np.array([exact(layers, point) for point in points.numpy()])
        assert (np.isinf(distances) == np.isinf(truth)).all()
        is_finite = np.isfinite(truth)
        ratios += list(distances[is_finite] / truth[is_finite])
    assert len(ratios) >= 3
    assert min(ratios) >= 1 - 1e-7
    assert max(ratios) <= 1.01
