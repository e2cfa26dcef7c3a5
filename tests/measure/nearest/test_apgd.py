"""What a descent differentiates."""

from __future__ import annotations

import torch
from helpers import problems
from helpers.attacked import clean_pass

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
