"""Rates with undecided points contain the interval of every assignment of these."""

from __future__ import annotations

import itertools

import pytest
from scipy.stats import beta

from brittle.extensions.detector.results import Rate


def exact(flagged: int, points: int, confidence: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval by SciPy's quantiles, [0, 1] without points."""
    tail = (1.0 - confidence) / 2.0
    low = float(beta.ppf(tail, flagged, points - flagged + 1)) if flagged else 0.0
    high = float(beta.ppf(1.0 - tail, flagged + 1, points - flagged)) if flagged < points else 1.0
    return low, high


@pytest.mark.parametrize("confidence", [0.5, 0.99])
def test_the_interval_covers_all_assignments_of_undecided_points(confidence: float) -> None:
    """By enumeration: every undecided point, flagged or not, belongs or does not."""
    for points, undecided in itertools.product(range(5), range(4)):
        for flagged, more in itertools.product(range(points + 1), range(undecided + 1)):
            rate = Rate(flagged, points, confidence, undecided, more)
            assignments = [
                (flagged + hits, points + hits + misses)
                for hits in range(more + 1)
                for misses in range(undecided - more + 1)
            ]
            lows, highs = zip(*(exact(*assignment, confidence) for assignment in assignments), strict=True)
            assert (rate.low, rate.high) == pytest.approx((min(lows), max(highs)), abs=1e-9)
            assert rate.value == (flagged / points if points else None)


def test_without_undecided_is_the_rate_of_the_decided_points() -> None:
    plain, open_ = Rate(33, 40, 0.99), Rate(33, 40, 0.99, 9, 4)
    assert open_.without_undecided == plain
    assert open_.low < plain.low < plain.high < open_.high
    assert str(plain) == "82.5% [62.4%, 94.6%], 33 of 40 points"
    assert str(open_).endswith("; 9 undecided ones, 4 of them flagged, counted either way")
