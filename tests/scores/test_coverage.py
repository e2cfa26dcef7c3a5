"""Intervals of the sampled estimators hold the flip probability on margins of every kind."""

from __future__ import annotations

import pytest
from checks.coverage import Counted, Key, beyond, count
from helpers.margins import Case, cases

HARD = [case for case in cases() if case.competitors == 1 and 0.02 < case.flip < 0.11 and case.size < 50][::3]


@pytest.mark.every_other
@pytest.mark.parametrize("case", HARD, ids=lambda case: case.name)
def test_covers_the_exact_probability(case: Case) -> None:
    """1,000 replicates of each; of an interval that misses 0.5% on a side more than 15 miss once in 1e4."""
    counts: dict[Key, Counted] = {}
    count(case, 60, 1000, counts)
    assert not list(beyond(counts))


def test_too_many_misses_are_told() -> None:
    """An interval that always lies below the truth is named, with the case."""
    case = HARD[0]
    counts: dict[Key, Counted] = {}
    count(Case(case.family, case.name, case.size, case.competitors, case.margins, flip=0.999), 60, 20, counts)
    assert {line.partition(",")[0] for line in beyond(counts)} >= {"moments", "mmse", "shrinkage"}
