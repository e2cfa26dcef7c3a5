"""Votes by class against a plain loop over the copies: ties, copies that are not finite, single copies and pairs."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from brittle.measure.noisy_margins import Votes


def vote_of(row: list[float]) -> int | None:
    """Return the class whose logit is larger than every other."""
    alone = all(map(math.isfinite, row)) and row.count(max(row)) == 1
    return row.index(max(row)) if alone else None


def count_votes(logits: Tensor) -> Tensor:
    points, units, members, classes = logits.shape
    counts = torch.zeros(points, classes, members, dtype=torch.int64)
    for point in range(points):
        for unit in range(units):
            votes = [vote_of(logits[point, unit, member].tolist()) for member in range(members)]
            for choice in {*votes} - {None}:
                counts[point, choice, votes.count(choice) - 1] += 1
    return counts


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("kind", ["normal", "ties", "not finite"])
def test_each_copy_votes_for_its_largest_logit(members: int, kind: str) -> None:
    drawn = torch.Generator().manual_seed(members)
    for units in range(8):
        logits = torch.randn(5, units, members, 3, generator=drawn, dtype=torch.float64)
        if kind == "ties":
            logits = logits.round()
        if kind == "not finite":
            logits[torch.rand(logits.shape, generator=drawn) < 0.1] = torch.nan
            logits[torch.rand(logits.shape, generator=drawn) < 0.1] = torch.inf
        predicted = torch.randint(3, (5,), generator=drawn)
        assert torch.equal(Votes.of(logits, predicted).classes, count_votes(logits))
