"""Votes of noisy copies: what counts as a flip, budgets of one stream, and copies in two stages."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from helpers.inputs import SIGMA
from helpers.measured import COUNT, clean_of, pairs_of
from helpers.problems import Wrapped, inputs, nan_under_noise, small_classifier, small_network
from scipy import stats

import brittle
from brittle.measure import Sample, take
from brittle.measure.sampling import NEAR
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


@pytest.mark.parametrize("kind", [MonteCarlo, Moments, partial(Shrinkage, limit=None), MMSE, MMSEMVS])
def test_smaller_budgets_are_read_off_on_the_way(kind) -> None:
    budgets = (6, 40)
    classifier = small_classifier()
    scores = [kind(SIGMA, draws=draws) for draws in budgets]
    measured = take(plan(scores), classifier, clean_of(classifier, inputs(COUNT)))
    together = classifier.passes
    for score in scores:
        alone = take(plan([score]), classifier, clean_of(classifier, inputs(COUNT)))
        one, other = (score.estimate(results, 0.99).value for results in (measured, alone))
        assert torch.allclose(one, other, atol=1e-6)
    assert together == int(scores[-1].estimate(measured, 0.99).passes[0]) * COUNT


def _whole_and_first(x: torch.Tensor, draws: int, first: int) -> tuple[list[bool], list[int], list[int]]:
    """Which points need all draws, by the definition, and how many of the first and of all their copies flip.

    The first copies are the first members of as many pairs.
    """
    classifier = small_classifier()
    with torch.no_grad():
        own = classifier(x).argmax(1)
        logits = torch.stack([classifier(copies) for copies in pairs_of(x, "sample", draws)]).double()
    kept = logits.gather(2, own[:, None, None].expand(-1, draws, 1))[:, :, 0]
    rivals = logits.scatter(2, own[:, None, None].expand(-1, draws, 1), -torch.inf).amax(2)
    nearest = kept - rivals
    single = nearest[:, : 2 * first : 2]
    near = [abs(float(row.mean())) < NEAR * float(row.std()) for row in single]
    return near, (single <= 0).sum(1).tolist(), (nearest <= 0).sum(1).tolist()


def _mixed_points(classes: int = 4) -> torch.Tensor:
    """Points of the small network from near a boundary to far from any."""
    x = inputs(80)
    with torch.no_grad():
        top = small_classifier(classes=classes)(x).topk(2, dim=1).values
    return x[(top[:, 0] - top[:, 1]).argsort()[torch.linspace(0, 79, COUNT).long()]]


def test_points_near_a_boundary_have_all_draws_and_the_others_the_first() -> None:
    classifier, x = small_classifier(), _mixed_points()
    need = Sample(Gaussian(SIGMA), 40, adaptive=True)
    before = classifier.passes
    clean = clean_of(classifier, x)
    found = need(classifier, clean)
    near, first, whole = _whole_and_first(x, 40, need.first_stage)
    assert need.first_stage == 12
    assert any(near)
    assert not all(near)
    flips = [0] * COUNT
    for rows, sampled in found.parts:
        for row, votes in zip(rows.tolist(), sampled.votes.flips.tolist(), strict=True):
            flips[row] = sum(many * count for many, count in enumerate(votes))
            assert (len(votes) - 1, sum(votes)) == ((2, 20) if near[row] else (1, 12))
    assert flips == [many if more else few for more, few, many in zip(near, first, whole, strict=True)]
    assert found.passes.tolist() == [41 if more else 13 for more in near]
    assert classifier.passes - before == int(found.passes.sum())


def test_stages_and_fixed_budgets_share_their_passes() -> None:
    x = _mixed_points()
    scores = [Shrinkage(SIGMA, draws=draws) for draws in (24, 80)]
    alike = (
        ([Moments(SIGMA, draws=20)], 80),
        ([Moments(SIGMA, draws=40)], 80),
        ([MonteCarlo(SIGMA, draws=120, limit=None)], 120),
    )
    for fixed, most in (([], 80), *alike[1:]):
        classifier = small_classifier()
        measured = take(plan([*scores, *fixed]), classifier, clean_of(classifier, x))
        assert COUNT * (1 + max(24, *(one.draws for one in fixed), 0)) <= classifier.passes <= COUNT * (1 + most)
        for score in scores:
            alone = take(plan([score]), classifier, clean_of(classifier, x))
            one, other = (score.estimate(results, 0.99) for results in (measured, alone))
            for name in ("value", "low", "high"):
                assert torch.allclose(getattr(one, name), getattr(other, name), atol=1e-6)
            assert torch.equal(one.passes, other.passes)


@pytest.mark.parametrize(("neighbour", "classes", "sigma"), [(0, 4, SIGMA), (7, 4, SIGMA), (0, 130, 0.03)])
def test_what_a_second_stage_shows_does_not_depend_on_the_other_points(
    neighbour: int, classes: int, sigma: float
) -> None:
    """To the last bit, whether the neighbour goes on or not; above 100 classes not all competitors are kept."""
    classifier, score = small_classifier(classes=classes), Shrinkage(sigma, draws=40)
    x = _mixed_points(classes)
    changed = x.clone()
    changed[2] = inputs(1, seed=neighbour)[0]
    one, other = (
        score.estimate(take(plan([score]), classifier, clean_of(classifier, both)), 0.99) for both in (x, changed)
    )
    others = torch.arange(COUNT) != 2
    assert torch.equal(one.value[others], other.value[others])
    assert torch.equal(one.passes[others], other.passes[others])
    assert len(set(one.passes.tolist())) == 2


def test_copies_that_are_not_finite_ask_for_no_more() -> None:
    classifier = brittle.Classifier(Wrapped(nan_under_noise))
    found = Sample(Gaussian(SIGMA), 40, adaptive=True)(classifier, clean_of(classifier, inputs(3)))
    assert found.passes.tolist() == [13] * 3


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
    found = score(brittle.Classifier(network, bounds=None), x, confidence=0.9999)
    assert float(found.low) < stats.norm.sf(gap / sigma) < float(found.high)
