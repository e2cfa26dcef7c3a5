"""Votes of noisy copies: what counts as a flip, and budgets of one stream."""

from __future__ import annotations

import pytest
import torch
from helpers.inputs import SIGMA
from helpers.measured import COUNT, clean_of
from helpers.problems import Wrapped, inputs, small_classifier

import brittle
from brittle.measure import Sample, take
from brittle.noise import Gaussian
from brittle.run import plan
from brittle.scores import MMSE, MMSEMVS, Moments, MonteCarlo, Shrinkage


@pytest.mark.parametrize("level", [0.0, torch.nan], ids=["tie", "NaN"])
def test_a_copy_that_votes_for_no_class_is_a_flip(level: float) -> None:
    """All logits are one number wherever an input has left [0, 1], as every noisy copy of corners of it has."""

    def levelled(x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        outside = ((x < 0) | (x > 1)).flatten(1).any(dim=1)
        return torch.where(outside[:, None], level, logits)

    classifier = brittle.Classifier(Wrapped(levelled))
    clean = clean_of(classifier, inputs(COUNT).round())
    assert not clean.tied.any()
    assert Sample(Gaussian(SIGMA), 10)(classifier, clean).votes.flips.tolist() == [[0, 0, 5]] * COUNT


def test_monte_carlo_moments_and_shrinkage_share_their_draws() -> None:
    classifier = small_classifier()
    scores = [kind(SIGMA, draws=40) for kind in (MonteCarlo, Moments, Shrinkage)]
    take(plan(scores), classifier, clean_of(classifier, inputs(COUNT)))
    assert classifier.passes == COUNT * (1 + 40)


@pytest.mark.parametrize("kind", [MonteCarlo, Moments, Shrinkage, MMSE, MMSEMVS])
def test_smaller_budgets_are_read_off_on_the_way(kind) -> None:
    budgets = (6, 10, 40)
    classifier = small_classifier()
    scores = [kind(SIGMA, draws=draws) for draws in budgets]
    measured = take(plan(scores), classifier, clean_of(classifier, inputs(COUNT)))
    together = classifier.passes
    for score in scores:
        alone = take(plan([score]), classifier, clean_of(classifier, inputs(COUNT)))
        one, other = (score.estimate(results, 0.99).value for results in (measured, alone))
        assert torch.allclose(one, other, atol=1e-6)
    assert together == int(scores[-1].estimate(measured, 0.99).passes[0]) * COUNT
