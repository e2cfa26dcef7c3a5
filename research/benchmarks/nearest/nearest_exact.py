"""Excess of the search over the exact distance, on networks of rectifiers small enough to compute it.

The nearest input with another class is the solution of a mixed-integer linear program (Tjeng, Xiao and Tedrake,
Evaluating robustness of neural networks with mixed integer programming, ICLR 2019, section 4), which HiGHS solves. It
shares no code with the library.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from nearest_networks import Recipe, train
from nearest_rows import EFFORTS
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import Tensor, nn

import brittle

Array = NDArray[np.float64]
Layer = tuple[Array, Array]
"""Weight `[m, n]` and bias `[m]` of a linear layer; rectifiers are between two layers."""

ROOM = 1e-6
"""Share beyond the search's distance in which the solver searches; its tolerance is of that order."""

NEAR = 0.01
"""Largest relative excess of a distance that counts as near."""

CLOSE = 0.001


def rectifiers(*hidden: int) -> Callable[[], nn.Module]:
    """Return a maker of a perceptron of 64 inputs and ten classes."""

    def make() -> nn.Module:
        widths = (64, *hidden)
        layers = [part for pair in itertools.pairwise(widths) for part in (nn.Linear(*pair), nn.ReLU())]
        return nn.Sequential(*layers, nn.Linear(widths[-1], 10))

    return make


NETWORKS = {
    "24": Recipe("digits", rectifiers(24), 1000, 100),
    "24, adversarial": Recipe("digits", rectifiers(24), 1000, 100, radius=0.1),
    "16-16": Recipe("digits", rectifiers(16, 16), 1000, 100),
    "16-16, adversarial": Recipe("digits", rectifiers(16, 16), 1000, 100, radius=0.1),
    "12-12-12": Recipe("digits", rectifiers(12, 12, 12), 1000, 100),
    "12-12-12, adversarial": Recipe("digits", rectifiers(12, 12, 12), 1000, 100, radius=0.1),
}
"""Makers and training of networks by hidden widths; the place of a name is its seed."""


def exact(names: list[str], points: int, seconds: float) -> pd.DataFrame:
    """Return a row for each network and effort: the excess of the search over the exact distance, in Linf."""
    lines = []
    for name in names:
        lines += _lines(name, points, seconds)
    return pd.DataFrame(lines)


def _lines(name: str, points: int, seconds: float) -> list[dict[str, object]]:
    network, x = trained(name, points)
    classifier = brittle.Classifier(network, bounds=(0, 1))
    results = {effort: brittle.nearest(classifier, x, norm="linf", effort=effort) for effort in EFFORTS}
    start = time.perf_counter()
    nearest = results[EFFORTS[-1]]
    layers = layers_of(network)
    truths = [
        exact_distance(layers, point, float(radius), int(winner), seconds)
        for point, radius, winner in zip(x.double().numpy(), nearest.distance, nearest.predicted, strict=True)
    ]
    solved = time.perf_counter() - start
    proved = np.array([truth.proved for truth in truths])
    distance = np.array([truth.distance for truth in truths])
    excess = {effort: result.distance.numpy() / distance - 1 for effort, result in results.items()}
    return [
        {
            "hidden": name,
            "points": len(x),
            "proved": int(proved.sum()),
            "effort": effort,
            "passes": float(results[effort].passes.double().mean()),
            "within 0.1%": float(np.mean(beyond[proved] <= CLOSE)),
            "within 1%": float(np.mean(beyond[proved] <= NEAR)),
            "median excess": float(np.median(beyond[proved])),
            "worst excess": float(beyond[proved].max()),
            "seconds of the solver": solved,
        }
        for effort, beyond in excess.items()
    ]


def trained(name: str, points: int) -> tuple[nn.Module, Tensor]:
    """Train a network, and return it with its first correct test digits, `[points, 64]`, pixels in [0, 1]."""
    from sklearn.datasets import load_digits

    recipe = NETWORKS[name]
    torch.manual_seed(list(NETWORKS).index(name))
    data, target = load_digits(return_X_y=True)
    x, y = torch.from_numpy(data).float() / 16, torch.from_numpy(target).long()
    network = train(recipe, x[: recipe.images], y[: recipe.images]).requires_grad_(False)
    x, y = x[recipe.images :], y[recipe.images :]
    return network, x[network(x).argmax(dim=1) == y][:points]


def layers_of(network: nn.Module) -> list[Layer]:
    """Return the linear layers of a perceptron of rectifiers."""
    linear = [part for part in network.modules() if isinstance(part, nn.Linear)]
    return [(part.weight.detach().double().numpy(), part.bias.detach().double().numpy()) for part in linear]


@dataclass(frozen=True)
class Truth:
    """The exact distance where `proved`, that is, where the solver ended in time."""

    distance: float
    proved: bool


def exact_distance(layers: list[Layer], x: Array, radius: float, winner: int, seconds: float = 60.0) -> Truth:
    """Return the Linf distance of the nearest input in [0, 1] where another class has at least the predicted logit.

    Args:
        layers: layers of the network.
        x: the point, `[n]`.
        radius: a distance at which class `winner` wins; the other classes have to be nearer.
        seconds: limit of the solver for each class.
    """
    predicted = int(np.argmax(logits(layers, x)))
    rivals = [winner, *(j for j in range(len(layers[-1][1])) if j not in (predicted, winner))]
    proved = True
    for number, rival_class in enumerate(rivals):
        distance, ended = _nearest_of(layers, x, predicted, rival_class, radius * (1 + ROOM), seconds)
        if number == 0 and distance is None and ended:
            raise ValueError(f"class {winner} does not win within {radius} of the point")
        proved &= ended
        radius = radius if distance is None else min(radius, distance)
    return Truth(radius, proved)


def logits(layers: list[Layer], x: Array) -> Array:
    """Return the logits of the network in double precision."""
    for weight, bias in layers[:-1]:
        x = np.maximum(weight @ x + bias, 0)
    return layers[-1][0] @ x + layers[-1][1]


def _nearest_of(
    layers: list[Layer], x: Array, predicted: int, rival_class: int, radius: float, seconds: float
) -> tuple[float | None, bool]:
    """Return the distance at which two logits are equal, None beyond `radius`, and whether the solver ended.

    Variables: the distance `t`, the input, then for each hidden layer the rectified values and a binary for each unit,
    1 where it is active. Bounds of the values before rectifiers come from intervals around the ball of `radius`.
    """
    low, high = np.maximum(x - radius, 0), np.minimum(x + radius, 1)
    program = _Program(np.zeros(1), np.full(1, radius))
    place = program.variables(low, high)
    program.rows([(place, np.eye(len(x))), (slice(0, 1), -np.ones((len(x), 1)))], -np.inf, x)
    program.rows([(place, np.eye(len(x))), (slice(0, 1), np.ones((len(x), 1)))], x, np.inf)
    for weight, bias in layers[:-1]:
        lowest, highest = _interval(weight, bias, low, high)
        low, high = np.maximum(lowest, 0), np.maximum(highest, 0)
        after, unit = program.variables(low, high), np.eye(len(bias))
        active = program.variables((lowest >= 0).astype(float), (highest > 0).astype(float), integral=True)
        below, above = np.minimum(lowest, 0), high
        program.rows([(after, unit), (place, -weight)], bias, np.inf)
        program.rows([(after, unit), (place, -weight), (active, -np.diag(below))], -np.inf, bias - below)
        program.rows([(after, unit), (active, -np.diag(above))], -np.inf, 0.0)
        place = after
    weight, bias = layers[-1]
    lead, offset = (weight[rival_class] - weight[predicted])[None], (bias[rival_class] - bias[predicted])[None]
    if _interval(lead, offset, low, high)[1][0] < 0:
        return None, True
    program.rows([(place, lead)], -offset, np.inf)
    return program.least_first(seconds)


def _interval(weight: Array, bias: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the lowest and the highest values of a linear layer between `low` and `high`."""
    up, down = np.maximum(weight, 0), np.minimum(weight, 0)
    return up @ low + down @ high + bias, up @ high + down @ low + bias


class _Program:
    """A mixed-integer linear program: variables in blocks, rows between bounds."""

    def __init__(self, low: Array, high: Array) -> None:
        self.low, self.high, self.whole = [low], [high], [np.zeros(len(low))]
        self.parts: list[tuple[list[tuple[slice, Array]], Array, Array]] = []

    def variables(self, low: Array, high: Array, integral: bool = False) -> slice:
        """Add a block of new variables between bounds."""
        start = sum(len(block) for block in self.low)
        self.low.append(low)
        self.high.append(high)
        self.whole.append(np.full(len(low), float(integral)))
        return slice(start, start + len(low))

    def rows(self, terms: list[tuple[slice, Array]], low: Array | float, high: Array | float) -> None:
        """Add `low <= sum of matrix times block <= high`, one row for each row of the matrices."""
        size = len(terms[0][1])
        self.parts.append((terms, np.broadcast_to(low, size), np.broadcast_to(high, size)))

    def least_first(self, seconds: float) -> tuple[float | None, bool]:
        """Return the smallest value of the first variable, None without a solution, and whether the solver ended."""
        width = sum(len(block) for block in self.low)
        matrix = np.zeros((sum(len(low) for _, low, _ in self.parts), width))
        start = 0
        for terms, low, _ in self.parts:
            for block, values in terms:
                matrix[start : start + len(low), block] += values
            start += len(low)
        ends = [
            np.concatenate(several)
            for several in ([low for _, low, _ in self.parts], [high for *_, high in self.parts])
        ]
        solution = milp(
            np.eye(1, width)[0],
            integrality=np.concatenate(self.whole),
            bounds=Bounds(np.concatenate(self.low), np.concatenate(self.high)),  # pyright: ignore[reportArgumentType]
            constraints=[LinearConstraint(matrix, *ends)],  # pyright: ignore[reportArgumentType]
            options={"time_limit": seconds, "mip_rel_gap": 1e-6},
        )
        return (float(solution.fun) if solution.x is not None else None), solution.status in (0, 2)
