"""How often a prediction is called wrong by the rule that stops early, and how many draws it saves.

    PYTHONPATH=tests python -m checks.decisions

First, known problems: points that flip with a known probability, near each limit and far from it, 4,000 replicates of
each; every one is looked at as a run looks at it. Printed: the share that is called wrong (nominal: at most 0.5% on
either side), the share that is decided, and the mean number of draws.

Then points of which most hold or break clearly. Printed: the mean draws of the rule, and the number of draws, the same
for every point, whose Clopper-Pearson interval decides as many points.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from brittle.intervals import clopper_pearson, decided, log_evidence_below
from brittle.measure.stopping import StoppingRule, looks
from brittle.scores.monte_carlo import DRAWS

LIMITS, CONFIDENCE, REPLICATES, MOST_DRAWS = (0.5, 0.9, 0.99), 0.99, 4000, 10_000

FACTORS = (0.02, 0.3, 0.8, 0.95, 1.05, 1.25, 2.0)
"""Flip probabilities of the known problems, in parts of the one that the limit allows."""

MOST_WRONG = 0.01
"""Share of points that may be called wrong."""


def stopped(flips: NDArray[np.float64], limit: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What the rule says of points with these flip probabilities: 1 holds, -1 breaks, 0 undecided; and the draws."""
    rng = np.random.default_rng(seed)
    said, draws, counts = (np.zeros(len(flips), dtype=np.int64) for _ in range(3))
    active, before, rule = np.arange(len(flips)), 0, StoppingRule(DRAWS, limit, None, CONFIDENCE)
    for look in looks(DRAWS):
        counts[active] += rng.binomial(look - before, flips[active])
        draws[active], before = look, look
        done = decided(counts[active], counts[active], look, limit, CONFIDENCE)
        below = log_evidence_below(counts[active], look, 1.0 - limit) > 0
        said[active[done]] = np.where(below[done], 1, -1)
        active = active[~rule.answered(counts[active], counts[active], np.full(len(active), look))]
    return said, draws


def as_good(flips: NDArray[np.float64], limit: float, share: float) -> int:
    """The smallest number of draws, the same for every point, that decides this share of the points."""
    low, high = 1, 2 * DRAWS
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        counts = np.random.default_rng(1).binomial(middle, flips)
        least, most = clopper_pearson(counts, middle, CONFIDENCE)
        enough = np.mean((most <= 1.0 - limit) | (least >= 1.0 - limit)) >= share
        low, high = (low, middle) if enough else (middle, high)
    return high


def known() -> float:
    """Points of known flip probabilities; the largest share that is called wrong."""
    worst = 0.0
    print(f"{'limit':>6} {'flips':>8} {'wrong':>8} {'decided':>8} {'draws':>8}")
    for limit in LIMITS:
        for factor in FACTORS:
            flip = min((1.0 - limit) * factor, 0.999)
            said, draws = stopped(np.full(REPLICATES, flip), limit, 0)
            wrong = float(np.mean(said == (1 if flip > 1.0 - limit else -1)))
            worst = max(worst, wrong)
            print(f"{limit:6g} {flip:8.4g} {wrong:8.2%} {np.mean(said != 0):8.1%} {draws.mean():8.0f}")
    return worst


def population(flips: NDArray[np.float64]) -> None:
    """The draws that the rule saves over these points."""
    for limit in LIMITS:
        said, draws = stopped(flips, limit, 0)
        share = float(np.mean(said != 0))
        number = as_good(flips, limit, share)
        by_rule = f"{share:.1%} decided by {draws.mean():.0f} draws in the mean ({np.median(draws):.0f} in the median)"
        times = number / draws.mean()
        print(f"limit {limit:g}: {by_rule}; as many by {number} draws of each point: {times:.1f} times as many")


def main() -> int:
    worst = known()
    rng = np.random.default_rng(0)
    population(np.where(rng.random(2000) < 0.2, rng.random(2000), rng.beta(0.1, 2, 2000)))
    print(f"called wrong at most: {worst:.2%}")
    return int(worst > MOST_WRONG)


if __name__ == "__main__":
    sys.exit(main())
