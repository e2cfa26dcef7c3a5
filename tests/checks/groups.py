"""Misses of the intervals of means over groups on made-up populations.

    PYTHONPATH=tests python -m checks.groups [--replicates 2000] [--only intervals differences pairs networks]

Intervals: the mean of robustness known at 20 to 5,000 points; some laws come near 1 by many orders of magnitude.
Printed: misses on either side in per cent at nominal 99%, and the mean width.

Differences: how often classes are taken for different at 1%, by pairs of means and by the permutation test, where one
law or one mean is that of all, and how often a class that is worse is found.

Pairs: the difference of two models under one noise. Both flip where a shared normal number lies below their threshold.

Networks: two networks trained on the digits of scikit-learn, with shared and with separate draws: the variance of the
difference of their mean robustness over seeds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import special, stats

import brittle
from brittle.analysis import compare, mean_interval
from brittle.analysis.class_bias import mean_differences, permutation_p_value
from brittle.analysis.mean_interval import ranged_interval
from brittle.extensions.demo.digits import load_digits, train
from brittle.scores import MonteCarlo

Values = NDArray[np.float64]
Random = np.random.Generator

CONFIDENCE, DRAWS = 0.99, 100
ROBUSTNESS = {"spread out": (2.0, 1.0), "near 1": (20.0, 0.4), "nearly always 1": (5.0, 0.02)}
"""Parameters of the beta law of robustness."""

VALUES: dict[str, tuple[Callable[[Random, int], Values], float]] = {
    **{law: (lambda rng, size, a=a, b=b: rng.beta(a, b, size), a / (a + b)) for law, (a, b) in ROBUSTNESS.items()},
    **{
        f"margins near {far}": (
            lambda rng, size, far=far: special.ndtr(far + 2.0 * rng.standard_normal(size)),
            float(special.ndtr(far / np.sqrt(5.0))),
        )
        for far in (2, 6)
    },
}
"""Laws of robustness with their means: beta laws, and networks whose margins in units of the noise have spread 2."""

EQUAL: dict[str, Callable[[Random, int], Values]] = {
    "near 1": lambda rng, size: rng.beta(20.0, 0.4, size),
    "counts": lambda rng, size: rng.binomial(DRAWS, rng.beta(5.0, 0.1, size)) / DRAWS,
    "0 and 1": lambda rng, size: (rng.random(size) < 0.97).astype(np.float64),
}
UNLIKE: tuple[Callable[[Random, int], Values], ...] = (
    lambda rng, size: np.full(size, 0.9),
    lambda rng, size: (rng.random(size) < 0.9).astype(np.float64),
    lambda rng, size: rng.beta(18.0, 2.0, size),
    lambda rng, size: rng.beta(0.9, 0.1, size),
)
"""Laws with the mean 0.9 in common alone."""


def intervals(replicates: int) -> float:
    """Print a line for every law and number of points, and return the largest share of misses on one side."""
    worst = 0.0
    for points in (20, 200, 1000, 5000):
        for law, (draw, truth) in VALUES.items():
            rng = np.random.default_rng(points)
            estimates = np.array([mean_interval(draw(rng, points), CONFIDENCE) for _ in range(replicates)])
            sides = (estimates[:, 1] > truth).mean(), (estimates[:, 2] < truth).mean()
            print(
                f"{points:4d} points, {law:15s} misses {100 * sides[0]:4.2f} {100 * sides[1]:4.2f}  width "
                f"{(estimates[:, 2] - estimates[:, 1]).mean():.2g}",
                flush=True,
            )
            worst = max(worst, *sides)
    return worst


def differences(replicates: int) -> float:
    """Print how often equal means differ and a worse class is found, and return the largest false rate."""
    worst = 0.0
    for classes, size in ((2, 5), (3, 1000), (10, 5), (10, 20), (10, 100), (100, 20)):
        rng = np.random.default_rng([classes, size])
        for name in (*EQUAL, "unlike"):
            ours = dealt = 0
            for _ in range(replicates):
                groups = [
                    EQUAL[name](rng, size) if name in EQUAL else UNLIKE[k % 4](rng, max(5, size // (1 + 3 * (k % 2))))
                    for k in range(classes)
                ]
                ours += mean_differences(groups, CONFIDENCE).p_value < 0.01
                dealt += permutation_p_value(groups) < 0.01
            print(
                f"{classes:3d} classes of {size:4d}, equal means, {name:8s} pairs differ "
                f"{100 * ours / replicates:5.2f}%, by permutations {100 * dealt / replicates:6.2f}%",
                flush=True,
            )
            worst = max(worst, ours / replicates)
    for shift, size in ((0.15, 20), (0.05, 100), (0.05, 300), (0.1, 100), (0.15, 100)):
        _power(shift, size, replicates // 4)
    return worst


def _power(shift: float, size: int, replicates: int) -> None:
    rng = np.random.default_rng(9)
    convicted, differ = 0, 0
    for _ in range(replicates):
        worse = 20.0 * (0.9 - shift)
        groups = [rng.beta(worse, 20.0 - worse, size), *(rng.beta(18.0, 2.0, size) for _ in range(9))]
        convicted += mean_differences(groups, CONFIDENCE).least_robust == (0,)
        differ += permutation_p_value(groups) < 0.01
    parts = ", ".join(
        f"{word} {100 * number / replicates:.0f}%" for word, number in (("differ", differ), ("named", convicted))
    )
    print(f" 10 classes of {size:4d}, one worse by {shift:g}: {parts}", flush=True)


def pairs(replicates: int) -> float:
    """Print coverage and width of the paired difference, and return the largest share of misses on one side."""
    worst = 0.0
    for points in (20, 100, 1000):
        for reach, step in ((1.0, 0.2), (2.5, 0.1), (4.0, 0.3)):
            truth = _mean_flips(reach + step) - _mean_flips(reach)
            for draws in (10, 100):
                rng = np.random.default_rng([points, draws])
                misses, widths = np.zeros(2), np.zeros(3)
                for _ in range(replicates):
                    shared, separate, apart = _votes(rng, points, draws, reach, step)
                    bounds = [ranged_interval(values, -1.0, 1.0, CONFIDENCE) for values in (shared, separate)]
                    misses += (bounds[0][1] > truth, bounds[0][2] < truth)
                    widths[:2] += [high - low for _, low, high in bounds]
                    widths[2] += np.hypot(*(interval.high - interval.low for interval in apart))
                above, below = misses / replicates
                shared_width, separate_width, third = widths / replicates
                print(
                    f"{points:4d} points, thresholds at {reach:g} and {reach + step:g}, {draws:3d} draws: misses "
                    f"{100 * above:4.2f} {100 * below:4.2f}  width {shared_width:.4f}, own noise "
                    f"{separate_width:.4f}, other points {third:.4f}",
                    flush=True,
                )
                worst = max(worst, above, below)
    return worst


def _mean_flips(reach: float) -> float:
    """Return the mean of `Phi(-(reach + u))` over standard normal `u`, the place of a point."""
    return float(special.ndtr(-reach / np.sqrt(2.0)))


def _votes(rng: Random, points: int, draws: int, reach: float, step: float) -> tuple[Values, Values, list]:
    """Draw differences of flips with shared and with separate noise, and both intervals at separate points."""
    place = rng.standard_normal(points)
    noise, second = rng.standard_normal((2, points, draws))
    baseline, shared, separate = (
        (numbers < -(far + place)[:, None]).mean(axis=1)
        for numbers, far in ((noise, reach), (noise, reach + step), (second, reach + step))
    )
    elsewhere = (second < -(reach + step + rng.standard_normal(points))[:, None]).mean(axis=1)
    return shared - baseline, separate - baseline, [mean_interval(flips, CONFIDENCE) for flips in (baseline, elsewhere)]


def networks(seeds: int = 30, draws: int = 20) -> None:
    """Print the variance over seeds of the difference of two networks, by shared and by separate noise."""
    x_train, y_train, x, _ = load_digits()
    torch.set_num_threads(1)
    models = [brittle.Classifier(train(x_train, y_train, seed)) for seed in (0, 1)]
    for sigma in (0.2, 0.4):
        tables = [
            [
                brittle.score(model, x, [MonteCarlo(sigma, draws=draws, limit=None)], seed=seed, skip_doctor=True)
                for seed in range(seeds)
            ]
            for model in models
        ]
        flips = np.array([[np.asarray(table.columns[-1]).mean() for table in row] for row in tables])
        shared = (flips[0] - flips[1]).var(ddof=1)
        separate = flips.var(axis=1, ddof=1).sum()
        rows = [compare(tables[0][0], tables[1][seed]).iloc[-1] for seed in (0, 1)]
        words = "; ".join(
            f"{row['noise']} {row['difference']:.4f} [{row['difference_low']:.4f}, {row['difference_high']:.4f}]"
            for row in rows
        )
        print(
            f"digits, sigma {sigma:g}, {draws} draws: own noise takes {separate / shared:.1f} times the draws; {words}",
            flush=True,
        )


def main(arguments: Sequence[str]) -> int:
    """Print a line for every cell; return 1 where a rate is above what chance exceeds once in 10,000."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--only", nargs="+", default=[*PARTS, "networks"])
    options = parser.parse_args(arguments)
    worst = {name: part(options.replicates) for name, (part, _) in PARTS.items() if name in options.only}
    if "networks" in options.only:
        networks()
    exceeds = 0
    for name, share in worst.items():
        allowed = stats.binom.ppf(1.0 - 1e-4, options.replicates, PARTS[name][1]) / options.replicates
        exceeds |= share > allowed
        print(f"largest share of misses, {name}: {100 * share:.2f}%, chance allows {100 * allowed:.2f}%")
    return int(exceeds)


PARTS: dict[str, tuple[Callable[[int], float], float]] = {
    "intervals": (intervals, (1.0 - CONFIDENCE) / 2.0),
    "differences": (differences, 1.0 - CONFIDENCE),
    "pairs": (pairs, (1.0 - CONFIDENCE) / 2.0),
}
"""Parts of the check, with their nominal share of misses on one side, or of rejections."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
