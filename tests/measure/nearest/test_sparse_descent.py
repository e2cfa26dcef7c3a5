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
    """One hidden layer; `UNITS` units cut the inputs into at most `2^UNITS` pieces."""
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Linear(SIZE, UNITS), nn.ReLU(), nn.Linear(UNITS, CLASSES)).double().eval()
    for parameter in layers.parameters():
        nn.init.normal_(parameter)
    return layers


def exact(layers: nn.Sequential, point: np.ndarray) -> float:
    """The least `sum |d|` with `point + d` in [0, 1] and another class ahead, over all signs of the hidden units."""
    first: Any = layers[0]
    last: Any = layers[2]
    weight, bias = first.weight.detach().numpy(), first.bias.detach().numpy()
    out, shift = last.weight.detach().numpy(), last.bias.detach().numpy()
    logits = layers(torch.from_numpy(point)[None])[0].detach().numpy()
    own = int(logits.argmax())
    limits = [(0, 1 - value) for value in point] + [(0, value) for value in point]
    best = np.inf
    for on in itertools.product((0.0, 1.0), repeat=UNITS):
        signs = 2 * np.array(on) - 1
        inside = -signs[:, None] * weight, signs * (weight @ point + bias)
        for other in set(range(CLASSES)) - {own}:
            lead = (out[own] - out[other]) * np.array(on)
            rows = np.vstack((inside[0], lead @ weight))
            ends = np.append(inside[1], -(lead @ (weight @ point + bias) + shift[own] - shift[other]))
            found = linprog([1.0] * 2 * SIZE, np.hstack((rows, -rows)), ends, bounds=limits)
            best = min(best, found.fun if found.success else np.inf)
    return best


def test_the_nearest_input_in_l1_is_found_on_small_networks() -> None:
    ratios = []
    for seed in range(2):
        layers = network(seed)
        points = torch.rand(3, SIZE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        found = run(brittle.Classifier(layers, bounds=(0, 1)), points, norm="l1").distance.numpy()
        truth = np.array([exact(layers, point) for point in points.numpy()])
        assert (np.isinf(found) == np.isinf(truth)).all()
        known = np.isfinite(truth)
        ratios += list(found[known] / truth[known])
    assert len(ratios) >= 3
    assert min(ratios) >= 1 - 1e-7
    assert max(ratios) <= 1.01
