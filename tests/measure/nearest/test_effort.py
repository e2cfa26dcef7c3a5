"""More effort, and the best of all attacks, is no worse."""

from __future__ import annotations

import itertools

import pytest
from helpers import problems
from helpers.attacked import PAIRS, run

from brittle.measure.nearest import EFFORTS
from brittle.measure.nearest.norms import NORMS


@pytest.mark.parametrize("norm", NORMS)
def test_more_effort_is_no_worse(norm: str) -> None:
    results = [run(problems.small_classifier(), problems.inputs(5), norm=norm, effort=effort) for effort in EFFORTS]
    for cheap, dear in itertools.pairwise(results):
        assert float(dear.distance.sum()) <= float(cheap.distance.sum()) * 1.001
        assert (dear.passes > cheap.passes).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("effort", ["fast", pytest.param("standard", marks=pytest.mark.slow)])
def test_best_is_no_farther_than_any_attack(effort: str, norm: str) -> None:
    best = run(problems.small_classifier(), problems.inputs(3), norm=norm, effort=effort)
    for attack, of_norm in PAIRS:
        if of_norm == norm:
            alone = run(problems.small_classifier(), problems.inputs(3), norm=norm, attack=attack, effort=effort)
            assert float(best.distance.sum()) <= float(alone.distance.sum()) * 1.01
