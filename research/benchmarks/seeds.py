"""Claims of the front page and of the studies on networks that differ in the seed of their training alone.

    python research/benchmarks/seeds.py [--points 150] [--seeds 0 1 2] [--reference 4000]

Four networks (`HELD_OUT` of `research/benchmarks/shrinkage.py`) are trained on the handwritten digits from each seed
and scored at sigma 0.25. Printed for each network and seed, and at the end the range of each number over seeds:

- accuracy, points that hold, break and stay undecided by the default at limit 0.9;
- error of the default by that of counting as many copies (below 1: the default is nearer);
- median L2 distance to the nearest other prediction, and Kendall's tau of the logit margin with it;
- points whose decision differs between two seeds, as a share of the points that both decide.
"""

from __future__ import annotations

import argparse
import math
from itertools import combinations

import numpy as np
import pandas as pd
import torch
from decided import reference
from estimators import Task, trained
from shrinkage import HELD_OUT
from timing import print_table

import brittle
from brittle.analysis.correlation import kendall_tau
from brittle.scores import InputMargin, LogitMargin, Shrinkage

SIGMA, LIMIT = 0.25, 0.9
HEADER = ("network", "seed", "right", "hold", "break", "undecided", "error ratio", "median distance", "tau")


def measure(task: Task, draws: int) -> tuple[pd.Series, list[float]]:
    """Return the decision of every point, and the numbers of a row."""
    scores = [Shrinkage(task.sigma), InputMargin("l2"), LogitMargin()]
    table = brittle.score(brittle.Classifier(task.network, bounds=(0, 1)), task.points, scores)
    columns = {column.score: column for column in table.columns}
    counted, distance, margin = (columns[name] for name in ("shrinkage", "input_margin", "logit_margin"))
    states = counted.states(LIMIT)
    truth, value = reference(task, draws), torch.tensor(counted.value.to_numpy())
    spread = float((truth * (1.0 - truth)).mean())
    square = float((value - truth).square().mean()) - spread / (draws - 1)
    ratio = math.sqrt(max(square, 0.0) / (spread / (float(counted.passes.mean()) - 1.0)))
    shares = [float((states == state).mean()) for state in ("holds", "breaks", "undecided")]
    tau = kendall_tau(distance.value.to_numpy(), margin.value.to_numpy())
    return states, [*shares, ratio, float(np.median(distance.value)), tau]


def main() -> None:
    """Print a row for each network and seed, and the ranges over seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=150)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--reference", type=int, default=4000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, differing = [], {}
    for name, make in HELD_OUT.items():
        states = []
        for seed in options.seeds:
            for task in trained(options.points, {name: make}, seed):
                if task.sigma == SIGMA:
                    decisions, numbers = measure(task, options.reference)
                    states.append(decisions)
                    rows.append((name, seed, task.name.rsplit("(")[-1].split()[0], *numbers))
        pairs = [
            (a[both], b[both]) for a, b in combinations(states, 2) for both in [(a != "undecided") & (b != "undecided")]
        ]
        differing[name] = [float((a != b).mean()) for a, b in pairs]
    print_table(HEADER, rows)
    for name, shares in differing.items():
        numbers = np.array([row[3:] for row in rows if row[0] == name])
        ranges = ", ".join(
            f"{title} {low:.3g} to {high:.3g}"
            for title, low, high in zip(HEADER[3:], numbers.min(0), numbers.max(0), strict=True)
        )
        print(f"{name}: {ranges}; decisions that differ {min(shares):.1%} to {max(shares):.1%}")


if __name__ == "__main__":
    main()
