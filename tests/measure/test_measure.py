"""Measurements: the fast way against the slow and obvious one, and passes that are shared and counted."""

from __future__ import annotations

import pytest
import torch
from helpers.inputs import SIGMA
from helpers.problems import Wrapped, inputs, linear_network, small_classifier, small_network

import brittle
from brittle.errors import ModelError, ParameterError
from brittle.measure import NearestMargin, Sample, take
from brittle.measure.forward import ALL_CLASSES_UP_TO, KEPT_CLASSES, look
from brittle.noise import Gaussian, Stream
from brittle.run import plan
from brittle.scores import MMSE, MMSEMVS, FirstOrderMargin, Moments, MonteCarlo, Taylor, TaylorMVS

COUNT = 5
IDS = tuple(str(number) for number in range(COUNT))


def clean_of(classifier: brittle.Classifier, x: torch.Tensor):
    return look(classifier, x, IDS[: len(x)], seed=0)


def slow_jacobian(network: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.autograd.functional.jacobian(lambda one: network(one[None])[0], x).flatten(1)


def pairs_of(x: torch.Tensor, purpose: str, draws: int) -> torch.Tensor:
    """The noisy copies that a measurement of these points makes, `[B, draws, *shape]`."""
    half = Stream(Gaussian(SIGMA), x, IDS[: len(x)], 0, purpose).draw(draws // 2)
    signed = torch.stack((half, -half), dim=2).flatten(1, 2)
    return x[:, None] + signed


def test_gram_is_that_of_the_jacobian() -> None:
    network = small_network(dtype=torch.float64)
    x = inputs(COUNT, dtype=torch.float64)
    linear = brittle.linearize(brittle.Classifier(network), x)
    for number in range(COUNT):
        jacobian = slow_jacobian(network, x[number])
        assert torch.allclose(linear.gram[number], jacobian @ jacobian.T, rtol=1e-12, atol=1e-12)
        assert torch.allclose(linear.logits[number], network(x[number : number + 1])[0], atol=1e-12)


def test_smoothed_linearisation_is_the_mean_over_noisy_copies() -> None:
    network = small_network(dtype=torch.float64)
    x = inputs(COUNT, dtype=torch.float64)
    linear = brittle.linearize(brittle.Classifier(network), x, noise=Gaussian(SIGMA), draws=6)
    copies = pairs_of(x, "linearize", 6)
    for number in range(COUNT):
        jacobian = torch.stack([slow_jacobian(network, copy) for copy in copies[number]]).mean(0)
        assert torch.allclose(linear.gram[number], jacobian @ jacobian.T, rtol=1e-10, atol=1e-12)
        assert torch.allclose(linear.logits[number], network(copies[number]).mean(0), atol=1e-12)


def test_leaving_out_a_group_is_the_mean_without_its_draws() -> None:
    network = small_network(dtype=torch.float64)
    x = inputs(1, dtype=torch.float64)
    linear = brittle.linearize(brittle.Classifier(network), x, noise=Gaussian(SIGMA), draws=6)
    assert linear.without_group is not None
    logits, gram = linear.without_group
    copies = pairs_of(x, "linearize", 6)[0]
    rest = copies[2:]  # without the first pair, which is the first of three groups
    jacobian = torch.stack([slow_jacobian(network, copy) for copy in rest]).mean(0)
    assert logits.shape[1] == 3
    assert torch.allclose(logits[0, 0], network(rest).mean(0), atol=1e-12)
    assert torch.allclose(gram[0, 0], jacobian @ jacobian.T, rtol=1e-10, atol=1e-12)


def test_nearest_margin_is_the_mean_over_noisy_copies() -> None:
    network = small_network(dtype=torch.float64)
    x = inputs(2, dtype=torch.float64)
    classifier = brittle.Classifier(network)
    found = NearestMargin(Gaussian(SIGMA), 4)(classifier, clean_of(classifier, x))
    copies = pairs_of(x, "nearest_margin", 4)
    for number in range(2):
        top = int(network(x[number : number + 1]).argmax())
        points = copies[number].clone().requires_grad_(True)
        logits = network(points)
        others = torch.cat((logits[:, :top], logits[:, top + 1 :]), dim=1)
        margin = logits[:, top] - others.amax(1)
        gradient = torch.autograd.grad(margin.sum(), points)[0].mean(0).flatten()
        assert float(found.margin[number]) == pytest.approx(margin.mean().item(), abs=1e-12)
        assert float(found.variance[number]) == pytest.approx(float(gradient @ gradient), rel=1e-10)


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


def test_a_sweep_over_sigma_costs_one_jacobian() -> None:
    scores = [kind(sigma) for kind in (Taylor, TaylorMVS) for sigma in torch.linspace(0.01, 1.0, 20).tolist()]
    needs = plan([*scores, FirstOrderMargin()])
    assert len(needs) == 1
    classifier = small_classifier()
    clean = look(classifier, inputs(COUNT), IDS, 0, differentiate=True)
    take(needs, classifier, clean)
    assert classifier.passes == COUNT * (1 + 4)


def test_monte_carlo_and_moments_share_their_draws() -> None:
    classifier = small_classifier()
    take(plan([MonteCarlo(SIGMA, draws=40), Moments(SIGMA, draws=40)]), classifier, clean_of(classifier, inputs(COUNT)))
    assert classifier.passes == COUNT * (1 + 40)


@pytest.mark.parametrize("kind", [MonteCarlo, Moments, MMSE, MMSEMVS])
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


def test_rows_in_a_pass_do_not_matter() -> None:
    classifier = small_classifier()
    x = inputs(COUNT)
    scores = [MonteCarlo(SIGMA, draws=40), MMSE(SIGMA, draws=6)]
    values = []
    for rows in (1, 7, 500):
        measured = take(plan(scores), classifier, look(classifier, x, IDS, 0, rows=rows))
        values.append(torch.cat([score.estimate(measured, 0.99).value for score in scores]))
    assert all(torch.allclose(value, values[0], atol=1e-5) for value in values)


def test_jacobians_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = brittle.linearize(small_classifier(), inputs(COUNT))
    monkeypatch.setattr("brittle.measure.linearize.JACOBIAN_NUMBERS", 2 * 4 * 36)
    blocks = brittle.linearize(small_classifier(), inputs(COUNT))
    assert torch.allclose(whole.gram, blocks.gram, rtol=1e-5, atol=1e-5)
    assert torch.equal(whole.classes, blocks.classes)


def test_above_100_classes_the_nearest_are_kept() -> None:
    assert ALL_CLASSES_UP_TO == 100
    classifier = brittle.Classifier(linear_network(101, 8))
    x = inputs(COUNT, (8,), dtype=torch.float64)
    linear = brittle.linearize(classifier, x)
    assert linear.gram.shape == (COUNT, KEPT_CLASSES + 1, KEPT_CLASSES + 1)
    assert linear.logits.shape == (COUNT, 101)
    kept = linear.logits.gather(1, linear.classes).amin(dim=1)
    assert bool(((linear.logits > kept[:, None]).sum(1) == KEPT_CLASSES).all())
    everything = brittle.linearize(classifier, x, classes=100)
    assert everything.gram.shape == (COUNT, 101, 101)


@pytest.mark.parametrize("kind", [Taylor, TaylorMVS])
def test_what_was_left_out_is_covered_by_the_interval(kind) -> None:
    classifier = brittle.Classifier(linear_network(120, 40))
    x = inputs(COUNT, (40,), dtype=torch.float64)
    clean = clean_of(classifier, x)
    some, all_of_them = kind(0.05), kind(0.05, classes=119)
    measured = take(plan([some, all_of_them]), classifier, clean)
    few, full = some.estimate(measured, 0.99), all_of_them.estimate(measured, 0.99)
    assert {"classes_kept"} == {brittle.estimate.Status(code).slug for code in few.status.tolist()}
    assert bool((few.value <= full.value + 1e-3).all())
    assert bool((full.value <= few.high + 1e-3).all())
    assert bool((few.high > few.value).all())


def test_training_mode_and_gradients_are_put_back() -> None:
    network = small_network().train()
    brittle.linearize(brittle.Classifier(network), inputs(2))
    assert network.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in network.parameters())


class Detached(torch.nn.Module):
    """Cuts its input off from the gradient."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach().requires_grad_(True)


def test_misuse() -> None:
    classifier = small_classifier()
    with pytest.raises(ParameterError, match="needs both noise and draws"):
        brittle.linearize(classifier, inputs(1), noise=Gaussian(SIGMA))
    with pytest.raises(ParameterError, match="at least 1 competitor"):
        brittle.linearize(classifier, inputs(1), classes=0)
    inside = brittle.Classifier(torch.nn.Sequential(Detached(), small_network()))
    with pytest.raises(ModelError, match="use scores without gradients"):
        brittle.linearize(inside, inputs(1))
    detached = brittle.Classifier(lambda x: small_network()(x).detach())
    with pytest.raises(ModelError, match="use scores without gradients"):
        brittle.linearize(detached, inputs(1))
