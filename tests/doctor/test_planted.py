"""Whether scores see boundaries that are planted, and wrong ones are seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.planted import subject
from helpers.problems import inputs, small_network
from torch import nn

from brittle.doctor.planted import plant
from brittle.scores import MMSE, FirstOrderMargin, InputMargin, Moments, MonteCarlo, Score, Shrinkage, Taylor

SEEN = [
    MonteCarlo(0.1, draws=400),
    Moments(0.1, draws=100),
    Shrinkage(0.1, draws=100),
    Taylor(0.1),
    MMSE(0.1, draws=20),
    FirstOrderMargin(),
    FirstOrderMargin(norm="linf"),
    InputMargin(effort="fast"),
    InputMargin("linf", effort="fast"),
]


@pytest.mark.parametrize("score", SEEN, ids=lambda score: score.label)
def test_scores_see_what_is_planted(score: Score) -> None:
    """By chance at most one in 1,250 of the sampled ones would not; the seeds are fixed."""
    found = list(plant(subject(small_network(), [score])))
    assert len(found) == 8
    assert all(seen.right for seen in found)
    assert len({seen.planted for seen in found}) > 3
    assert max(seen.most for seen in found if np.isfinite(seen.most)) < 1.1 or score.quantity != "flip_probability"


@pytest.mark.parametrize("score", SEEN, ids=lambda score: score.label)
@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_a_score_that_is_wrong_is_seen(score: Score, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers, intervals and all, times a factor where a boundary is planted."""
    right = type(score).estimate
    calls = []

    def wrong(self: Score, measured: object, confidence: float) -> object:
        found = right(self, measured, confidence)  # type: ignore[arg-type]
        calls.append(len(found.value))
        if len(calls) == 1:
            return found
        return replace(found, value=found.value * factor, low=found.low * factor, high=found.high * factor)

    monkeypatch.setattr(type(score), "estimate", wrong)
    assert not all(seen.right for seen in plant(subject(small_network(), [score])))


def test_a_missing_number_is_not_right() -> None:
    class Broken(nn.Module):
        """NaN logits near every point, but not at it."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = small_network()(x)
            return torch.where((x.flatten(1)[:, :1] * 2**20 % 1 == 0), z, torch.nan)

    x = (inputs(8) * 16).round() / 16
    assert not any(seen.right for seen in plant(subject(Broken(), [MonteCarlo(0.1, draws=20)], x)))
