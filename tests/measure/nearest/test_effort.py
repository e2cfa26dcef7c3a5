"""More effort never ends farther away; the best of all attacks is no worse than any of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import pytest
import torch
from helpers import problems
from helpers.attacked import PAIRS, run
from torch import nn

import brittle
from brittle.measure.nearest import EFFORTS
from brittle.measure.nearest.effort import Effort
from brittle.measure.nearest.norms import NORMS

pytestmark = pytest.mark.usefixtures("few_queries")


def wide(*hidden: int) -> brittle.Classifier:
    """A perceptron of random weights, whose boundary has many nearest inputs."""
    torch.manual_seed(5)
    widths = (36, *hidden)
    layers = [part for pair in itertools.pairwise(widths) for part in (nn.Linear(*pair), nn.ReLU())]
    return brittle.Classifier(nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], 5)), bounds=(0, 1))


NETWORKS: dict[str, Callable[[], brittle.Classifier]] = {
    "small": problems.small_classifier,
    "deep": lambda: wide(24, 24, 24),
    "steps": lambda: brittle.Classifier(problems.Wrapped(lambda x, logits: (8 * logits).round())),
}


LITTLE = Effort(
    patterns=1,
    halvings=1,
    starts=(0,),
    untargeted=(),
    untargeted_steps={"linf": 1, "l2": 1},
    agreeing=2,
    decay="geometric",
    scout_steps=1,
    rounds=((1, 1),),
    restart_rounds=(),
    refine_steps=1,
    refine_targets=1,
    sparse_scouts=1,
    sparse_targets=1,
    sparse_starts=1,
    sparse_steps=1,
    sparse_fine_steps=1,
    grow_targets=1,
    grow_steps=1,
    swap_targets=1,
    swap_steps=1,
    back_passes=1,
    smooth_rounds=1,
    smooth_steps=1,
    smooth_targets=1,
    queries=1,
    passes=EFFORTS["fast"].passes,
)
"""An effort that alone would end farther away than any other."""


def check_order(name: str, norm: str, efforts: Iterable[str]) -> None:
    results = [run(NETWORKS[name](), problems.inputs(5), norm=norm, effort=effort) for effort in efforts]
    for cheap, dear in itertools.pairwise(results):
        assert (dear.distance <= cheap.distance).all()
        assert (dear.passes > cheap.passes).all()
        assert all((dear.by_attack[attack] <= cheap.by_attack[attack]).all() for attack in cheap.by_attack)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["small", "deep"])
def test_more_effort_never_ends_farther_away(name: str, norm: str) -> None:
    check_order(name, norm, list(EFFORTS)[:2])


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
def test_the_most_effort_ends_no_farther_away(norm: str) -> None:
    check_order("small", norm, list(EFFORTS)[1:])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_little_more_effort_loses_nothing(name: str, norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "standard", LITTLE)
    check_order(name, norm, ["fast", "standard"])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("effort", ["fast", pytest.param("standard", marks=pytest.mark.slow)])
def test_best_is_no_farther_than_any_attack(effort: str, norm: str) -> None:
    best = run(problems.small_classifier(), problems.inputs(3), norm=norm, effort=effort)
    for attack, of_norm in PAIRS:
        if of_norm == norm:
            alone = run(problems.small_classifier(), problems.inputs(3), norm=norm, attack=attack, effort=effort)
            assert float(best.distance.sum()) <= float(alone.distance.sum()) * 1.01
