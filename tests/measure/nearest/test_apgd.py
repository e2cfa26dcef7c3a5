"""Which competitors descents aim at, and which descents go on after a round."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from helpers import problems
from helpers.attacked import clean_pass, run
from torch import nn

import brittle
from brittle.measure.nearest import EFFORTS
from brittle.measure.nearest.apgd import nearest_of_each, steepest_line
from brittle.measure.nearest.norms import NORMS
from brittle.measure.nearest.search import ANY, Search


class Saturated(nn.Module):
    """Two classes whose boundary is the plane where the values sum to `level`; far from it the slope vanishes."""

    def __init__(self, level: float, steepness: float) -> None:
        super().__init__()
        self.level, self.steepness = level, steepness

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        beyond = torch.sigmoid(self.steepness * (x.flatten(1).sum(dim=1) - self.level))
        return torch.stack([1 - beyond, beyond], dim=1)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_nearest_of_each_point_go_on(count: int) -> None:
    """Against a sort of each point by itself; of equal distances the first ones stay, and the order of rows is kept."""
    generator = np.random.default_rng(count)
    rows = generator.permutation(np.repeat(np.arange(20), generator.integers(1, 6, 20)))
    distance = generator.integers(0, 4, len(rows)).astype(float)
    distance[generator.random(len(rows)) < 0.2] = np.inf
    expected = [
        place
        for place, row in enumerate(rows)
        if place in sorted(np.flatnonzero(rows == row), key=lambda one: (distance[one], one))[:count]
    ]
    assert nearest_of_each(torch.from_numpy(rows), torch.from_numpy(distance), count).tolist() == expected


def test_the_greatest_competitor_is_differentiated_where_none_is_named() -> None:
    """Against each candidate alone, over all competitors; classes that are named are left as they are."""
    classifier, points = problems.small_classifier(), problems.inputs(12)
    clean = clean_pass(classifier, points)
    search = Search(classifier, clean, NORMS["l2"], True)
    rows = torch.arange(12)
    candidates = problems.inputs(12, seed=3).flatten(1)
    named = (clean.predicted + 1) % clean.logits.shape[1]
    targets = torch.where(rows % 3 == 0, named, ANY)
    response = search.differentiate(rows, candidates, targets)
    for row in range(12):
        x = candidates[row].clone().requires_grad_(True)
        logits = classifier.model(x.view(1, *points.shape[1:]))[0]
        own, others = int(clean.predicted[row]), [one for one in range(len(logits)) if one != clean.predicted[row]]
        margin = logits[own] - (logits[named[row]] if row % 3 == 0 else max(logits[one] for one in others))
        margin.backward()
        torch.testing.assert_close(response.margin[row], margin.detach().double(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(response.gradient[row], x.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_saturated_network_is_crossed_within_twice_the_length_of_the_steepest_line(norm: str) -> None:
    """The distance to the plane is known; the linearised one is more than four times as great at every point."""
    classifier = brittle.Classifier(Saturated(14.0, 0.8))
    points = problems.inputs(8, (16,), dtype=torch.float64)
    search = Search(classifier, clean_pass(classifier, points), NORMS[norm], False)
    rows, targets, linear = search.rivals(torch.arange(8), 1)
    exact = (14.0 - points.sum(dim=1)) / {"linf": 16.0, "l2": 4.0}[norm]
    assert (linear > 4 * exact).all()
    found = steepest_line(search, rows, targets, linear)
    assert ((found < exact) & (exact <= 2 * found)).all()
    assert torch.equal(steepest_line(search, rows, targets, 0.9 * exact), 0.9 * exact)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_point_is_left_once_enough_descents_agree(monkeypatch: pytest.MonkeyPatch, norm: str) -> None:
    """The descents of a linear model end in the same place from every start, so that more starts cost nothing.

    A network in which they end elsewhere is searched from all.
    """
    linear = brittle.Classifier(problems.linear_network(4, 36), bounds=(-100, 100))
    points = {"linear": problems.inputs(8, (36,), dtype=torch.float64), "kinked": problems.inputs(8)}
    passes = {}
    for starts in (range(3), range(9)):
        effort = dataclasses.replace(EFFORTS["fast"], starts=tuple(starts), untargeted=(), agreeing=3, scout_steps=0)
        monkeypatch.setitem(EFFORTS, "fast", effort)
        for name, classifier in (("linear", linear), ("kinked", problems.small_classifier())):
            found = run(classifier, points[name], norm=norm, attack="apgd", effort="fast")
            passes[name, len(starts)] = found.passes
    assert torch.equal(passes["linear", 3], passes["linear", 9])
    assert (passes["kinked", 9] > passes["kinked", 3]).any()
