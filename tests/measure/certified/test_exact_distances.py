"""Certified radii lie below exact distances, which mixed-integer programs find without any bound of this library."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.bounded_networks import certified, lively
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import Tensor, nn

import brittle
from brittle.measure.certified import PROOFS

SIZE, HIDDEN, CLASSES, BIG = 4, 6, 3, 200.0


class Largest(nn.Module):
    """Two hidden layers: the larger of two numbers each, and rectifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(SIZE, HIDDEN), nn.Linear(SIZE, HIDDEN)
        self.middle, self.last = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.middle(torch.maximum(self.one(x), self.other(x))).relu())


class Program:
    """Variables of a mixed-integer program and rows `low <= a . v <= high`."""

    def __init__(self, count: int) -> None:
        self.count, self.rows, self.low, self.high = count, [], [], []  # type: ignore[var-annotated]

    def add(self, terms: list[tuple[int, float]], low: float, high: float = np.inf) -> None:
        row = np.zeros(self.count)
        for place, factor in terms:
            row[place] += factor
        self.rows.append(row)
        self.low.append(low)
        self.high.append(high)


def exact_distance(model: Largest, point: np.ndarray, own: int, other: int) -> float:
    """The smallest Linf distance at which `other` has at least the score of `own`."""
    # t, x, m (larger of two), b (which), r (rectified), c (active)
    t, x, m, b, r, c = 0, 1, 1 + SIZE, 1 + SIZE + HIDDEN, 1 + SIZE + 2 * HIDDEN, 1 + SIZE + 3 * HIDDEN
    program = Program(c + HIDDEN)
    for place in range(SIZE):
        program.add([(t, 1), (x + place, -1)], -point[place])
        program.add([(t, 1), (x + place, 1)], point[place])
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    for unit in range(HIDDEN):
        for name, slack in (("one", 0), ("other", 1)):
            line = [(x + place, -float(weights[f"{name}.weight"][unit, place])) for place in range(SIZE)]
            bias = float(weights[f"{name}.bias"][unit])
            program.add([(m + unit, 1), *line], bias)
            # b = 0 picks `one`, b = 1 picks `other`.
            sign = BIG if slack else -BIG
            program.add([(m + unit, 1), *line, (b + unit, sign)], -np.inf, bias + (BIG if slack else 0))
        line = [(m + place, -float(weights["middle.weight"][unit, place])) for place in range(HIDDEN)]
        bias = float(weights["middle.bias"][unit])
        program.add([(r + unit, 1), *line], bias)
        program.add([(r + unit, 1), *line, (c + unit, BIG)], -np.inf, bias + BIG)
        program.add([(r + unit, 1), (c + unit, -BIG)], -np.inf, 0)
    last = weights["last.weight"][other] - weights["last.weight"][own]
    gap = float(weights["last.bias"][own] - weights["last.bias"][other])
    program.add([(r + unit, float(last[unit])) for unit in range(HIDDEN)], gap)
    whole = np.zeros(program.count)
    whole[b : b + HIDDEN] = whole[c:] = 1
    low, high = np.full(program.count, -np.inf), np.full(program.count, np.inf)
    low[t] = low[x : x + SIZE] = 0
    high[x : x + SIZE] = 1
    low[r : r + HIDDEN] = low[b : b + HIDDEN] = low[c:] = 0
    high[b : b + HIDDEN] = high[c:] = 1
    ends = np.array(program.low), np.array(program.high)
    found = milp(
        np.eye(program.count)[t],
        integrality=whole,
        bounds=Bounds(low, high),  # pyright: ignore[reportArgumentType]
        constraints=[LinearConstraint(np.array(program.rows), *ends)],  # pyright: ignore[reportArgumentType]
    )
    return float(found.fun) if found.success else np.inf


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_radius_is_at_most_the_exact_distance(seed: int, proof: str) -> None:
    model = lively(Largest(), seed).double()
    assert isinstance(model, Largest)
    points = torch.rand(3, SIZE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = certified(brittle.Classifier(model, bounds=(0, 1)), points, proof=proof)
    assert found.unsupported is None
    own = model(points).argmax(1).tolist()
    ratios = []
    for point, label, radius in zip(points, own, found.radius.tolist(), strict=True):
        exact = min(exact_distance(model, point.numpy(), label, j) for j in range(CLASSES) if j != label)
        assert 0 < radius <= max(exact, 0) + 1e-6
        ratios.append(radius / exact)
    assert max(ratios) > (0.9 if proof == "full" else 0.25)
    assert min(ratios) > (0.7 if proof == "full" else 0.1)
