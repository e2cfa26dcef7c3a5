"""More effort never ends farther away; the best of all attacks is no worse than any of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import pytest
import torch
from helpers import problems
from helpers.attacked import run
from torch import nn

import brittle
from brittle.measure.nearest import EFFORTS
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
