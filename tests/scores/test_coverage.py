"""Intervals of the sampled estimators hold the flip probability, on a nonlinear network and on odd margins.

500 replicates of one point (the same input under other ids) at 99% confidence, at the default number of draws and at
few; the truth is the share of flips in a long run. A correct interval misses 5 times on average at most; more than 17
misses happen once in 2e5. An interval that is always [0, 1] fails on its width.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch
from checks.coverage import Counted, Key, beyond, count, estimates
from helpers.laws import MANY_ROWS, estimate
from helpers.margins import Case, cases
from helpers.problems import inputs, small_classifier
from scipy import stats

import brittle
from brittle.scores import MMSEMVS, Moments, MonteCarlo, Score, Shrinkage

pytestmark = pytest.mark.xdist_group("coverage")  # one process draws the long runs

SIGMA, REPLICATES, MOST_MISSES, LONG = 0.2, 500, 17, 20000


@cache
def flip_probability() -> float:
    """Return the flip probability of the point, from a long run."""
    long = MonteCarlo(SIGMA, draws=LONG, limit=None)
    return float(estimate(small_classifier(), inputs(1, seed=3), long, ["long run"], MANY_ROWS).value[0])


@pytest.mark.every_other
@pytest.mark.parametrize(
    ("score", "widest"),
    [
        (MonteCarlo(SIGMA, draws=100, limit=None), 0.40),
        (Moments(SIGMA, draws=20), 0.70),
        (Shrinkage(SIGMA, limit=None), 0.40),
        (MMSEMVS(SIGMA), 0.60),
        (MonteCarlo(SIGMA, draws=400), 0.60),
        (Shrinkage(SIGMA, draws=400, precision=0.3), 0.30),
    ],
    ids=lambda value: value.label if isinstance(value, Score) else None,
)
def test_intervals_cover_the_share_of_a_long_run(score: Score, widest: float) -> None:
    truth = flip_probability()
    x = inputs(1, seed=3).expand(REPLICATES, -1, -1, -1)
    intervals = estimate(small_classifier(), x, score, rows=MANY_ROWS)
    missed = int(((intervals.low > truth) | (intervals.high < truth)).sum())
    assert missed <= MOST_MISSES
    assert float((intervals.high - intervals.low).mean()) < widest
    assert 0.02 < truth < 0.98
    assert bool(torch.isfinite(intervals.value).all())


@pytest.mark.every_other
@pytest.mark.parametrize("flip", [0.01, 0.06, 0.0999, 0.1001, 0.16, 0.4])
@pytest.mark.parametrize("kind", [MonteCarlo, Shrinkage], ids=lambda kind: kind.name)
def test_stopped_counts_cover_the_probability_of_a_line(kind: type[MonteCarlo | Shrinkage], flip: float) -> None:
    """500 points at the same distance, most of them stopped at the first decisive look; at both ends."""
    x = torch.full((REPLICATES, 1), float(stats.norm.isf(flip)), dtype=torch.float64)
    line = brittle.Classifier(lambda x: torch.cat((x, torch.zeros_like(x)), dim=1), bounds=None)
    intervals = kind(1.0, draws=600)(line, x, seed=2)
    assert int(((intervals.low > flip) | (intervals.high < flip)).sum()) <= MOST_MISSES
    assert intervals.counted is not None
    low, high = intervals.counted
    assert int(((low > flip) | (high < flip)).sum()) <= MOST_MISSES
    assert float((high - low).mean()) < 0.5
    assert float(intervals.value.mean()) == pytest.approx(flip, abs=0.02)


HARD = [case for case in cases() if case.competitors == 1 and 0.02 < case.flip < 0.11 and case.size < 50][::3]


@pytest.mark.every_other
@pytest.mark.parametrize("case", HARD, ids=lambda case: case.name)
def test_intervals_cover_the_exact_probability(case: Case) -> None:
    """1,000 replicates each; an interval that misses 0.5% on a side misses more than 15 times once in 1e4."""
    counts: dict[Key, Counted] = {}
    count(case, 60, estimates(case, 60, 1000), {}, counts)
    assert not list(beyond(counts))


def test_too_many_misses_are_reported() -> None:
    """An interval that always lies below the truth is named, with the case."""
    case = HARD[0]
    counts: dict[Key, Counted] = {}
    count(replace(case, flip=0.999), 60, estimates(case, 60, 20), {}, counts)
    assert {line.partition(",")[0] for line in beyond(counts)} >= {"moments", "mmse", "shrinkage"}
