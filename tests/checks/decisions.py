"""Wrong verdicts of the rule that stops early, and the draws that it saves.

    PYTHONPATH=tests python -m checks.decisions

First, known problems: points that flip with a known probability, near each limit and far from it, 4,000 replicates of
each, with the looks of a run. Printed: the share of wrong verdicts (nominal: at most 0.5% on either side), the share of
decided points, and the mean number of draws.

Then points that mostly hold or break clearly. Printed: the mean draws of the rule, and the number of draws, the same
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
"""Flip probabilities of the known problems, as shares of the largest that the limit allows."""

MOST_WRONG = 0.01
"""Largest allowed share of wrong verdicts."""


def apply_rule(flips: NDArray[np.float64], limit: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return verdicts on points with these flip probabilities (1 holds, -1 breaks, 0 undecided), and the draws."""
    rng = np.random.default_rng(seed)
    answers, draws, counts = (np.zeros(len(flips), dtype=np.int64) for _ in range(3))
    active, before, rule = np.arange(len(flips)), 0, StoppingRule(DRAWS, limit, None, CONFIDENCE)
    for look in looks(DRAWS):
        counts[active] += rng.binomial(look - before, flips[active])
        draws[active], before = look, look
        done = decided(counts[active], counts[active], look, limit, CONFIDENCE)
        below = log_evidence_below(counts[active], look, 1.0 - limit) > 0
        answers[active[done]] = np.where(below[done], 1, -1)
        active = active[~rule.answered(counts[active], counts[active], np.full(len(active), look))]
    return answers, draws


def find_fixed_draws(flips: NDArray[np.float64], limit: float, share: float) -> int:
    """Return the smallest number of draws, the same for every point, that decides this share of the points."""
    low, high = 1, 2 * DRAWS
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        counts = np.random.default_rng(1).binomial(middle, flips)
        lowest, highest = clopper_pearson(counts, middle, CONFIDENCE)
        enough = np.mean((highest <= 1.0 - limit) | (lowest >= 1.0 - limit)) >= share
        low, high = (low, middle) if enough else (middle, high)
    return high


def check_known_problems() -> float:
    """Check points of known flip probabilities, and return the largest share of wrong verdicts."""
    worst = 0.0
    print(f"{'limit':>6} {'flips':>8} {'wrong':>8} {'decided':>8} {'draws':>8}")
    for limit in LIMITS:
        for factor in FACTORS:
            flip = min((1.0 - limit) * factor, 0.999)
            answers, draws = apply_rule(np.full(REPLICATES, flip), limit, 0)
            wrong = float(np.mean(answers == (1 if flip > 1.0 - limit else -1)))
            worst = max(worst, wrong)
            print(f"{limit:6g} {flip:8.4g} {wrong:8.2%} {np.mean(answers != 0):8.1%} {draws.mean():8.0f}")
    return worst


def population(flips: NDArray[np.float64]) -> None:
    """Print the draws that the rule saves over these points."""
    for limit in LIMITS:
        answers, draws = apply_rule(flips, limit, 0)
        share = float(np.mean(answers != 0))
        number = find_fixed_draws(flips, limit, share)
        by_rule = f"{share:.1%} decided by {draws.mean():.0f} draws in the mean ({np.median(draws):.0f} in the median)"
        times = number / draws.mean()
        print(f"limit {limit:g}: {by_rule}; as many by {number} draws of each point: {times:.1f} times as many")


def main() -> int:
    worst = check_known_problems()
    rng = np.random.default_rng(0)
    population(np.where(rng.random(2000) < 0.2, rng.random(2000), rng.beta(0.1, 2, 2000)))
    print(f"called wrong at most: {worst:.2%}")
    return int(worst > MOST_WRONG)


if __name__ == "__main__":
    sys.exit(main())
