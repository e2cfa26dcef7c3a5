"""Robust accuracy from attacks on a few points and logit margins of all (Algorithm 1), and from these few alone.

    python research/benchmarks/few_attacks.py EPSILON RUN [RUN ...] [--attack 100] [--subsets 200] [--confidence 0.95]

Each RUN is a folder of `brittle score MODEL DATA --scores input_margin logit_margin --norm linf`, whose points are all
attacked. Printed in points of accuracy, for random subsets of the attacked points: the mean absolute error against
attacking all of Algorithm 1 (`A`), of the same without its demand that 80% of the non-robust points are found (`A, no
80%`), of the rectified answer and of the subset alone; the mean width of the intervals of these two. Then how often the
intervals hold the truth: that of these points, and that of a population that the points were drawn from: the points of
the RUN stand for it, and half as many are drawn from them with replacement each time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from timing import print_table

import brittle
from brittle.analysis import direct_robust_accuracy, estimate_robust_accuracy
from brittle.text import parse_epsilon

HEAD = (
    "network", "all", "tau", "A", "A, no 80%", "rectified", "alone",
    "width", "alone", "holds", "alone", "of population", "alone",
)  # fmt: skip


def answers(
    rows: NDArray[np.float64], epsilon: float, arguments: argparse.Namespace, drawn: np.random.Generator
) -> tuple[Any, Any, Any]:
    """Return Algorithm 1, the same without the 80%, and the subset alone, for one subset of `rows` `[N, 3]`."""
    margin, score, correct = rows.T
    subset = drawn.choice(len(rows), arguments.attack, replace=False)
    from_few = estimate_robust_accuracy(margin, score, correct, epsilon, subset, arguments.confidence)
    free = estimate_robust_accuracy(margin, score, correct, epsilon, subset, arguments.confidence, min_tpr=0.0)
    return from_few, free, direct_robust_accuracy(margin[subset], correct[subset], epsilon, arguments.confidence)


def of_run(folder: Path, epsilon: float, arguments: argparse.Namespace) -> list[str]:
    """Return the row of one network."""
    table, drawn = brittle.read_table(folder), np.random.default_rng(0)
    margin, score = table["input_margin"].value.to_numpy(), table["logit_margin"].value.to_numpy()
    rows = np.stack([margin, score, np.asarray(table.points["correct"].to_pylist(), float)], axis=1)
    truth = direct_robust_accuracy(margin, rows[:, 2], epsilon).robust_accuracy
    fixed = [answers(rows, epsilon, arguments, drawn) for _ in range(arguments.subsets)]
    size = len(rows) // 2
    resampled = [
        answers(rows[drawn.integers(0, len(rows), size)], epsilon, arguments, drawn) for _ in range(arguments.subsets)
    ]
    values = np.array(
        [
            (from_few.estimate, free.estimate, from_few.rectified, direct.robust_accuracy)
            for from_few, free, direct in fixed
        ]
    )
    errors = 100 * np.abs(values - truth).mean(axis=0)
    widths = [100 * np.mean([answer[place].high - answer[place].low for answer in fixed]) for place in (0, 2)]
    held = [
        np.mean([answer[place].low <= truth <= answer[place].high for answer in several])
        for several in (fixed, resampled)
        for place in (0, 2)
    ]
    tau = brittle.analysis.correlation.kendall_tau(margin, score)
    tenths = (f"{number:.1f}" for number in (*errors, *widths))
    return [folder.name, f"{100 * truth:.1f}", f"{tau:.2f}", *tenths, *(f"{share:.3f}" for share in held)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("epsilon", type=parse_epsilon)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--attack", type=int, default=100)
    parser.add_argument("--subsets", type=int, default=200)
    parser.add_argument("--confidence", type=float, default=0.95)
    options = parser.parse_args(arguments)
    print_table(HEAD, [of_run(folder, options.epsilon, options) for folder in options.runs])


if __name__ == "__main__":
    main()
