"""Votes of the same number of noisy copies for every point: the definition of a flip, and budgets of one stream."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from helpers.inputs import SIGMA
from helpers.measured import COUNT, clean_of, pairs_of
from helpers.problems import Wrapped, inputs, small_classifier, small_network
from scipy import stats

import brittle
from brittle.measure import Sample, take
from brittle.noise import Gaussian
from brittle.run import plan
from brittle.scores import MMSE, MMSEMVS, Moments, MonteCarlo, Shrinkage


@pytest.mark.parametrize("level", [0.0, torch.nan], ids=["tie", "NaN"])
def test_a_copy_that_votes_for_no_class_is_a_flip(level: float) -> None:
    """All logits are one number outside [0, 1], where every noisy copy of its corners lies."""

    def levelled(x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        outside = ((x < 0) | (x > 1)).flatten(1).any(dim=1)
        return torch.where(outside[:, None], level, logits)

    classifier = brittle.Classifier(Wrapped(levelled))
    clean = clean_of(classifier, inputs(COUNT).round())
    assert not clean.tied.any()
    assert Sample(Gaussian(SIGMA), 10)(classifier, clean).votes.flips.tolist() == [[0, 0, 5]] * COUNT


@pytest.mark.parametrize(
    "kind", [partial(MonteCarlo, limit=None), Moments, partial(Shrinkage, limit=None), MMSE, MMSEMVS]
)
def test_smaller_budgets_share_the_copies_of_larger_ones(kind) -> None:
    budgets = (6, 40)
    classifier = small_classifier()
    scores = [kind(SIGMA, draws=draws) for draws in budgets]
    measured = take(plan(scores), classifier, clean_of(classifier, inputs(COUNT)))
    together = classifier.passes
    for score in scores:
        alone = take(plan([score]), classifier, clean_of(classifier, inputs(COUNT)))
        shared, single = (score.estimate(results, 0.99).value for results in (measured, alone))
        assert torch.allclose(shared, single, atol=1e-6)
    assert together == int(scores[-1].estimate(measured, 0.99).passes[0]) * COUNT


def test_moments_are_those_of_the_formula() -> None:
    network = small_network(dtype=torch.float64)
    x = inputs(2, dtype=torch.float64)
    classifier = brittle.Classifier(network)
    sampled = Sample(Gaussian(SIGMA), 20)(classifier, clean_of(classifier, x))
    copies = pairs_of(x, "sample", 20)
    for number in range(2):
        top = int(network(x[number : number + 1]).argmax())
        logits = network(copies[number])
        margins = logits[:, top : top + 1] - torch.cat((logits[:, :top], logits[:, top + 1 :]), dim=1)
        even, odd = (margins[::2] + margins[1::2]) / 2, (margins[::2] - margins[1::2]) / 2
        covariance = odd.T @ odd / 10 + (even - even.mean(0)).T @ (even - even.mean(0)) / 9
        assert torch.allclose(sampled.margins.spread.mean[number], even.mean(0), atol=1e-12)
        assert torch.allclose(sampled.margins.covariance[number], covariance, atol=1e-12)
        flipped = (margins <= 0).any(dim=1).view(10, 2).sum(1)
        assert sampled.votes.flips[number].tolist() == torch.bincount(flipped, minlength=3).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_copies_are_as_fine_as_the_model(dtype: torch.dtype) -> None:
    """A model of double precision, at a point where single precision has steps of 128: the flip is a normal tail.

    The interval at confidence 0.9999 of 1,000 copies, so a false alarm in 10,000 for each; the seed is fixed.
    """
    network = torch.nn.Linear(1, 2).double()
    base, gap, sigma = 1.7e9, 30.0, 40.0
    network.weight.data = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    network.bias.data = torch.tensor([-base - gap, 0.0], dtype=torch.float64)
    x = torch.tensor([[base]], dtype=dtype)
    assert float(x) == base
    score = MonteCarlo(sigma=sigma, draws=1000, limit=None)
    estimate = score(brittle.Classifier(network, bounds=None), x, confidence=0.9999)
    assert float(estimate.low) < stats.norm.sf(gap / sigma) < float(estimate.high)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**127], ids=["small", "large"])
@pytest.mark.parametrize("limit", [0.9, None])
def test_the_scale_of_the_logits_changes_no_number(limit: float | None, scale: float) -> None:
    """Powers of 2 change no digit, and margins of finite logits may be larger than single precision goes."""

    def estimates(factor: float) -> list[list[float]]:
        def saturate(x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
            side = 1.9 * logits[:, 0].tanh() * factor
            return torch.stack((side, -side), dim=1)

        scores = [kind(sigma=0.5, limit=limit) for kind in (MonteCarlo, Shrinkage)]
        table = brittle.score(brittle.Classifier(Wrapped(saturate)), inputs(COUNT), scores)
        return [column.value.tolist() for column in table.columns]

    assert estimates(scale) == estimates(1.0)
