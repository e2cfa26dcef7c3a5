"""Rates with undecided points: they hold every way in which these may belong."""

from __future__ import annotations

import itertools

import pytest
from scipy.stats import beta

from brittle.extensions.detector.results import Rate


def exact(flagged: int, points: int, confidence: float) -> tuple[float, float]:
    """Clopper-Pearson's interval by SciPy's quantiles, the whole range of no points."""
    tail = (1.0 - confidence) / 2.0
    low = float(beta.ppf(tail, flagged, points - flagged + 1)) if flagged else 0.0
    high = float(beta.ppf(1.0 - tail, flagged + 1, points - flagged)) if flagged < points else 1.0
    return low, high


@pytest.mark.parametrize("confidence", [0.5, 0.99])
def test_the_interval_is_that_of_every_way_to_count_the_undecided(confidence: float) -> None:
    """By trying all ways: every undecided point, flagged or not, belongs or does not."""
    for points, undecided in itertools.product(range(5), range(4)):
        for flagged, more in itertools.product(range(points + 1), range(undecided + 1)):
            found = Rate(flagged, points, confidence, undecided, more)
            ways = [
                (flagged + hits, points + hits + misses)
                for hits in range(more + 1)
                for misses in range(undecided - more + 1)
            ]
            lows, highs = zip(*(exact(*way, confidence) for way in ways), strict=True)
            assert (found.low, found.high) == pytest.approx((min(lows), max(highs)), abs=1e-9)
            assert found.value == (flagged / points if points else None)


def test_a_rate_without_undecided_points_is_the_one_of_these_alone() -> None:
    plain, open_ = Rate(33, 40, 0.99), Rate(33, 40, 0.99, 9, 4)
    assert open_.without_undecided == plain
    assert open_.low < plain.low < plain.high < open_.high
    assert str(plain) == "82.5% [62.4%, 94.6%], 33 of 40 points"
    assert str(open_).endswith("; 9 undecided ones, 4 of them flagged, counted either way")
