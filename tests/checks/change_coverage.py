"""How often the intervals of the probability's change miss the truth, whatever the network, and how wide they are.

    PYTHONPATH=tests python -m checks.change_coverage [--replicates 2000] [--draws 10 20 100] [--cases kink ...]

For margins of every family of `helpers.margins`, and kinks that noise seldom reaches: mean, variance and mean absolute
value of the change (`probability_change`), from the logits of the noisy copies of many replicates of one point on.
The truth is the average over two million copies in plain NumPy. Printed for each case, number of draws and statistic:
the share of `vacuous` rows, the misses of the others on either side, those of all rows, in per cent at nominal 99%, and
the median interval beside the truth.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import numpy as np
import torch
from helpers.margins import Case, cases
from scipy import special, stats

from brittle.estimate import Status
from brittle.measure import Clean, Sampled
from brittle.measure.sample_sums import SampleSums
from brittle.scores import ProbabilityChange
from brittle.scores.probability_change import STATISTICS

CONFIDENCE, MOST = 0.99, 0.015
"""Nominal confidence, and the share of `ok` rows whose interval may miss on either side."""

PAIRS, BLOCK = 1_000_000, 50_000
"""Pairs of noisy copies behind a truth, and how many are taken at a time."""

FEWEST = 100
"""`ok` rows of which a share of misses says something."""

AT_ONCE = 2**22
"""Numbers of noise that are held at a time."""


def seldom(sigma: float, slope: float = 0.0) -> Case:
    """`3 - slope v - 20 relu(sigma v - 0.3)`, `v` standard normal."""
    bend = 0.3 / sigma
    flip = float(stats.norm.sf(bend + 0.15 / sigma)) if slope == 0 else math.nan
    name = f"kink, 3 - {slope:g} v - 20 relu({sigma:g} v - 0.3)"
    return Case("kink", name, 1, 1, lambda v: 3.0 - slope * v - 20.0 * (sigma * v - 0.3).clamp_min(0.0), flip)


def scaled(case: Case, slope: float) -> Case:
    """A case with margins `slope` times as large, which moves no prediction and all probabilities."""
    return Case(
        case.family, f"{case.name}, times {slope:g}", case.size, case.competitors, lambda v: slope * case.margins(v),
        case.flip,
    )  # fmt: skip


def chosen(families: list[str]) -> Iterator[Case]:
    """Every seventh case, those with straight margins also eight times as steep, and kinks that noise seldom meets."""
    known = cases()[::7]
    known += [scaled(case, 8.0) for case in known if case.family in ("linear", "step")]
    known += [seldom(sigma, slope) for sigma, slope in ((0.18, 0.0), (0.14, 0.0), (0.1, 0.0), (0.14, 0.05))]
    return (case for case in known if case.family in families)


def sampled(case: Case, draws: int, replicates: int, seed: int) -> Sampled:
    """What `draws` noisy copies in antithetic pairs show over replicates of the point."""
    generator = torch.Generator().manual_seed(seed)
    logits = case.logits(torch.zeros(replicates, case.size, dtype=torch.float64))
    clean = Clean(torch.zeros(replicates, 1), tuple(map(str, range(replicates))), 0, logits, replicates)
    sums, left = SampleSums.start(clean), draws // 2
    while left:
        units = min(left, max(1, AT_ONCE // (replicates * (case.size + case.competitors))))
        noise = torch.randn(replicates, units, case.size, generator=generator, dtype=torch.float64)
        sums.add(torch.stack([case.logits(sign * noise) for sign in (1.0, -1.0)], dim=2))
        left -= units
    return sums.read(draws // 2)


@cache
def truth(case: Case, pairs: int = PAIRS) -> dict[str, float]:
    """Moments of the change by averaging, without a line of the library."""
    rng, sums = np.random.default_rng(7), np.zeros(3)
    doubt = _doubt(case, np.zeros((1, case.size)))[0]
    for _ in range(pairs // BLOCK):
        noise = rng.standard_normal((BLOCK, case.size))
        for sign in (1.0, -1.0):
            change = doubt - _doubt(case, sign * noise)
            sums += [power.sum() for power in (change, change**2, abs(change))]
    mean, square, absolute = sums / (2 * (pairs // BLOCK) * BLOCK)
    return {"mean": mean, "variance": square - mean**2, "absolute": absolute}


def _doubt(case: Case, noise: np.ndarray) -> np.ndarray:
    margins = case.margins(torch.from_numpy(noise)).numpy()
    return special.expit(special.logsumexp(-margins, axis=1))


def misses(found: Sampled, statistic: str, draws: int, true: float) -> tuple[float, list[float], list[float], str]:
    """The share of vacuous rows, misses above and below of those that are `ok` and of all, and the median interval."""
    score = ProbabilityChange(1.0, draws=draws, statistic=statistic)
    estimate = score.estimate({score.needs[0]: found}, CONFIDENCE)
    sides = torch.stack((estimate.low > true, estimate.high < true)).double()
    ok = estimate.status == int(Status.OK)
    published = sides[:, ok].mean(dim=1).tolist() if int(ok.sum()) >= FEWEST else [0.0, 0.0]
    ends = f"[{float(estimate.low.median()):.2g}, {float(estimate.high.median()):.2g}] of {true:.2g}"
    return 1.0 - float(ok.double().mean()), published, sides.mean(dim=1).tolist(), ends


def main(arguments: list[str]) -> int:
    """Print a line for every case and number of draws; 1 where `ok` rows miss more than `MOST` on a side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--draws", type=int, nargs="+", default=[10, 20, 50, 100, 1000])
    parser.add_argument("--cases", nargs="+", default=["linear", "quadratic", "cubic", "kink", "step", "shell"])
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    worst: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0] * 5)
    for case in chosen(given.cases):
        true = truth(case)
        for draws in given.draws:
            found = sampled(case, draws, given.replicates, seed=draws)
            line = f"{case.name:52s} {draws:4d}"
            for statistic in STATISTICS:
                vacuous, ok, every, ends = misses(found, statistic, draws, true[statistic])
                shares = [100 * share for share in (vacuous, *ok, *every)]
                line += " | {} {:.0f} {:.2f} {:.2f} ({:.2f} {:.2f}) {}".format(statistic[:4], *shares, ends)
                old = worst[statistic, draws]
                worst[statistic, draws] = [max(pair) for pair in zip(old, shares, strict=True)]
            print(line, flush=True)
    print("largest shares in per cent: vacuous; misses of rows that are ok, low and high end; of all rows")
    for (statistic, draws), shares in worst.items():
        print("  {:9s} {:4d} draws  {:5.1f}  {:5.2f} {:5.2f}  {:5.2f} {:5.2f}".format(statistic, draws, *shares))
    return int(max(max(shares[1:3]) for shares in worst.values()) > 100 * MOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
