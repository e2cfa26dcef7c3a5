"""Decisions and errors of the default, compared with counting as many copies of every point.

    python research/benchmarks/decided.py [--points 150] [--reference 10000] [MODEL.pt2 DATA SIGMA ...]

Without your own networks, four are trained on the handwritten digits of scikit-learn (`HELD_OUT` of
`research/benchmarks/shrinkage.py`): they took part in no choice of `shrinkage`, nor of when copies stop or get mirror
images. The reference is plain counting over separate draws, without code of the package; its own part of a mean square
error, `p (1 - p) / (n - 1)`, is subtracted. Printed for each network and sigma, at limit 0.9 and confidence 0.99:

- points that the default decides, its copies in the mean and CPU seconds; points that 1,000 independent copies of each
  decide by the interval of Clopper and Pearson, in the mean over such counts;
- for each number of copies at most the root mean square error of the default, and of as many copies of every point
  (`limit=None`), as shares of that of counting as many copies as these took in the mean.

The last lines hold geometric means and ranges over networks and sigmas.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
import torch
from estimators import Task, loaded, trained
from scipy import stats
from shrinkage import HELD_OUT
from torch import Tensor

import brittle
from brittle.intervals import clopper_pearson
from brittle.scores import Shrinkage

COPIES, BLOCK, COUNT, LIMIT, CONFIDENCE = (20, 60, 200, 1000), 500, 1000, 0.9, 0.99


def reference(task: Task, draws: int) -> Tensor:
    """Return the flip probabilities by plain counting, `[B]`, float64."""
    generator, shares = torch.Generator().manual_seed(99), []
    with torch.no_grad():
        for point, label in zip(task.points, task.network(task.points).argmax(1), strict=True):
            noise = (torch.randn(BLOCK, *point.shape, generator=generator) for _ in range(draws // BLOCK))
            flips = [(task.network(point + task.sigma * block).argmax(1) != label).sum() for block in noise]
            shares.append(sum(map(int, flips)) / draws)
    return torch.tensor(shares, dtype=torch.float64)


def expected_decided(truth: Tensor) -> float:
    """Return the mean number of points that `COUNT` independent copies of each decide."""
    flips = np.arange(COUNT + 1)
    low, high = clopper_pearson(flips, COUNT, CONFIDENCE)
    decides = (high <= 1.0 - LIMIT) | (low >= 1.0 - LIMIT)
    return float(stats.binom.pmf(flips, COUNT, truth.numpy()[:, None])[:, decides].sum())


def show(task: Task, draws: int, ratios: dict[str, list[float]]) -> None:
    """Print one task, and add its errors to `ratios`."""
    truth, classifier = reference(task, draws), brittle.Classifier(task.network)
    spread = float((truth * (1.0 - truth)).mean())

    def score(**rule: float | None) -> tuple[brittle.Table, float, float]:
        """Score the points; return the table, the mean copies, and the error relative to counting as many."""
        table = brittle.score(classifier, task.points, [Shrinkage(task.sigma, **rule)])  # type: ignore[arg-type]
        (column,) = table.columns
        copies = float(column.passes.mean()) - 1.0
        square = float((torch.tensor(column.value.to_numpy()) - truth).square().mean()) - spread / (draws - 1)
        return table, copies, math.sqrt(max(square, 0.0) / (spread / copies))

    began = time.process_time()
    table, copies, _ = score()
    seconds = time.process_time() - began
    count = int((table.columns[0].states(LIMIT) != "undecided").sum())
    print(
        f"{task.name}, sigma {task.sigma:g}: {count} of {len(truth)} decided, {copies:.0f} copies, {seconds:.2f} s; "
        f"{expected_decided(truth):.0f} by {COUNT} copies of each"
    )
    for limit in COPIES:
        (_, copies, error), (_, _, fixed) = score(draws=limit), score(draws=limit, limit=None)
        print(f"  {limit:5d} at most, {copies:.0f} in the mean: {error:.2f}; of every point {fixed:.2f}", flush=True)
        for name, value in (
            (f"{limit} copies", copies),
            (f"{limit} default", error),
            (f"{limit} of every point", fixed),
        ):
            ratios.setdefault(name, []).append(value)


def main() -> None:
    """Print every task, and means over all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=150)
    parser.add_argument("--reference", type=int, default=10_000)
    parser.add_argument("task", nargs="*", help="MODEL.pt2 DATA SIGMA, in threes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ratios: dict[str, list[float]] = {}
    for task in loaded(options.task, options.points) if options.task else trained(options.points, HELD_OUT):
        show(task, options.reference, ratios)
    for name, values in ratios.items():
        print(f"{name}: {stats.gmean(values):.2f} ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
