"""Many runs of the same few points, counted: how often is a number wrong, and what is it called?

Where margins are not normal under noise (shells, exclusive-or, |x|, heavy tails, cliffs), a wrong number must be called
contradicted or extrapolated. Where they are, `contradicted` must stay rare among the rows that hold the truth.

By chance: the misses of all cells together, and of every cell, are compared with a rate of 2% at 1e-6.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache

import torch
from helpers import truth
from helpers.beside_truth import NUMBER, VOTES, Compared, compare, too_many
from helpers.odd_networks import ZOO
from helpers.odd_parts import BOUNDS
from torch import Tensor

import brittle
from brittle.scores import MMSE, Moments, MonteCarlo, Score, Shrinkage

MOST_CONTRADICTED = 0.02
"""Share of the rows that hold the truth that may be called contradicted."""

COPIES, REPLICATES = 4000, 32
"""Noisy copies for the truth of a point, and independent runs of it."""

LIMIT = 0.9
"""Probability that stopped counts decide about."""

DRAWS, GRADIENT_DRAWS = (20, 100, 400), (20, 100)
"""Of scores that count or take moments, and of scores by gradients."""


@dataclass(frozen=True)
class Cell:
    """Points of one network under noise of one size.

    Attributes:
        name: of the network.
        build: makes it.
        x: the points, `[P, *shape]`.
        sigma: of the noise.
    """

    name: str
    build: Callable[[], truth.Network]
    x: Tensor
    sigma: float

    @property
    def scores(self) -> tuple[list[Score], list[Score]]:
        """Those without gradients, and those with."""
        sampled: list[Score] = [kind(self.sigma, draws=draws) for kind in (MonteCarlo, Moments) for draws in DRAWS]
        sampled += [Shrinkage(self.sigma, draws=draws, adaptive=False) for draws in DRAWS]
        sampled += [Shrinkage(self.sigma), MonteCarlo(self.sigma, draws=DRAWS[-1], limit=LIMIT)]
        return sampled, [MMSE(self.sigma, draws=draws) for draws in GRADIENT_DRAWS]


@dataclass
class Counted:
    """Rows of replicates.

    Attributes:
        right: those whose interval meets the truth, by kind.
        wrong: those whose interval does not, by kind.
        misses: of intervals that are stood behind, by cell, point, score and kind.
    """

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    misses: Counter[str] = field(default_factory=Counter)

    def add(self, where: str, each: Compared) -> None:
        """Count one interval."""
        (self.right if each.holds else self.wrong)[each.kind] += 1
        if each.stood_behind and not each.holds:
            self.misses[f"{where}, {each.score}, {each.draws} draws, {each.kind}"] += 1

    @property
    def contradicted(self) -> float:
        """Share of the rows that hold the truth that are called contradicted."""
        return self.right["contradicted"] / max(1, self.right.total() - self.right[VOTES])

    def problems(self) -> list[str]:
        """What breaks the law: more misses than chance explains, in all cells or in one."""
        found = []
        for kind in (NUMBER, VOTES):
            wrong, total = self.wrong[kind], self.wrong[kind] + self.right[kind]
            if too_many(wrong, total):
                found.append(f"{wrong} of {total} intervals miss the truth ({kind})")
        worst = [(where, count) for where, count in self.misses.most_common(3) if too_many(count, REPLICATES)]
        return found + [f"{count} of {REPLICATES} miss: {where}" for where, count in worst]


def replicate(cells: Iterable[Cell]) -> dict[tuple[str, int | None], Counted]:
    """Run every cell in replicates, and count by score and draws."""
    found: dict[tuple[str, int | None], Counted] = {}
    for cell in cells:
        points = len(cell.x)
        for each in run(cell):
            where = f"{cell.name} at sigma {cell.sigma:.3g}, point {each.row % points}"
            found.setdefault((each.score, each.draws), Counted()).add(where, each)
    return found


def run(cell: Cell) -> list[Compared]:
    """All replicates of a cell beside the truth of its points; their ids differ, and so does their noise."""
    points = len(cell.x)
    x = cell.x.repeat(REPLICATES, *(1,) * (cell.x.dim() - 1))
    known = cache(lambda point: truth.alone(cell.build, cell.x[point], cell.sigma, COPIES, 1_000_000 + point))
    found = []
    for scores in cell.scores:
        classifier = brittle.Classifier(cell.build(), bounds=BOUNDS)
        table = brittle.score(classifier, x, scores, skip_doctor=True, most_failures=None)
        found += compare(table, lambda row: known(row % points), range(len(x)))
    return found


def line(*values: float, size: int = 2) -> Tensor:
    """Points with these values as the first number and zeros else, `[len(values), size]`."""
    x = torch.zeros(len(values), size)
    x[:, 0] = torch.tensor(values)
    return x


def hard_cells() -> list[Cell]:
    """Margins that are not normal under noise, at points near to and far from the boundary."""
    cells = []
    for size in (2, 10, 50):
        x = line(0.0, 0.35, 0.55, 0.66, 0.74, 0.98, size=size)
        shell = ZOO[f"shell, {size} dimensions"]
        cells += [Cell(shell.name, shell.build, x, part / math.sqrt(size)) for part in (0.07, 0.2, 0.6)]
    corners = torch.tensor([[0.02, 0.9], [0.1, 0.1], [0.3, 0.3], [0.9, 0.2], [0.6, -0.6]])
    for name in ("exclusive-or", "|x|", "x to the third", "x to the ninth", "exponential", "exponential downwards"):
        x = corners if name == "exclusive-or" else line(0.0, -0.2, 0.3, -0.45, 0.55, 0.95)
        cells += [Cell(name, ZOO[name].build, x, sigma) for sigma in (0.1, 0.3, 1.0)]
    for name in ("tangent", "one over x", "logarithm", "spikes of 5%", "a cliff at 0.6"):
        cells += [Cell(name, ZOO[name].build, line(0.05, -0.2, 0.45, -0.9), sigma) for sigma in (0.1, 0.3)]
    return cells


def easy_cells() -> list[Cell]:
    """Networks whose margins are normal, or nearly so, under noise of moderate size."""
    sigmas = {
        "linear, 2 classes": (0.1, 0.3),
        "linear, 5 classes": (0.1, 0.3),
        "linear, 10 classes": (0.1, 0.3),
        "perceptron trained on moons": (0.05, 0.1),
        "perceptron trained on blobs": (0.05, 0.1),
        "convolutional": (0.1, 0.3),
        "convolutional, smooth": (0.1, 0.3),
    }
    each = ((ZOO[name], sigma) for name, chosen in sigmas.items() for sigma in chosen)
    return [Cell(network.name, network.build, network.inputs()[:4], sigma) for network, sigma in each]
