"""What a descent differentiates, and when it sets out no more."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from helpers import problems
from helpers.attacked import clean_pass, run

import brittle
from brittle.measure.nearest import EFFORTS
from brittle.measure.nearest.norms import NORMS
from brittle.measure.nearest.search import ANY, Search


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


def test_a_point_is_left_once_enough_descents_agree(monkeypatch: pytest.MonkeyPatch) -> None:
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
            found = run(classifier, points[name], norm="l2", attack="apgd", effort="fast")
            passes[name, len(starts)] = found.passes
    assert torch.equal(passes["linear", 3], passes["linear", 9])
    assert (passes["kinked", 9] > passes["kinked", 3]).any()
