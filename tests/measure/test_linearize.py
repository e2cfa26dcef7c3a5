"""Logits and Gram matrix: those of the Jacobian, in blocks, over noise, and with the nearest classes alone."""

from __future__ import annotations

import pytest
import torch
from helpers.inputs import SIGMA
from helpers.measured import COUNT, clean_of, pairs_of, slow_jacobian
from helpers.problems import inputs, linear_network, small_classifier, small_network
from torch import Tensor, nn

import brittle
from brittle.measure import Linearization, Linearize, take
from brittle.measure.forward import ALL_CLASSES_UP_TO, KEPT_CLASSES
from brittle.noise import FactorGaussian, Gaussian, Noise
from brittle.run import plan
from brittle.scores import Taylor


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


def test_above_100_classes_the_nearest_are_kept() -> None:
    assert ALL_CLASSES_UP_TO == 100
    classifier = brittle.Classifier(linear_network(101, 8))
    x = inputs(COUNT, (8,), dtype=torch.float64)
    linear = brittle.linearize(classifier, x)
    assert linear.gram.shape == (COUNT, KEPT_CLASSES + 1, KEPT_CLASSES + 1)
    assert linear.logits.shape == (COUNT, 101)
    smallest_kept = linear.logits.gather(1, linear.classes).amin(dim=1)
    assert bool(((linear.logits > smallest_kept[:, None]).sum(1) == KEPT_CLASSES).all())
    everything = brittle.linearize(classifier, x, classes=100)
    assert everything.gram.shape == (COUNT, 101, 101)


def test_omitted_classes_only_lower_the_value_and_set_a_status() -> None:
    classifier = brittle.Classifier(linear_network(120, 40))
    x = inputs(COUNT, (40,), dtype=torch.float64)
    clean = clean_of(classifier, x)
    default, complete = Taylor(0.05), Taylor(0.05, classes=119)
    measured = take(plan([default, complete]), classifier, clean)
    lower, full = default.estimate(measured, 0.99), complete.estimate(measured, 0.99)
    assert {"classes_kept"} == {brittle.estimate.Status(code).slug for code in lower.status.tolist()}
    assert bool((lower.value <= full.value + 1e-3).all())


SIZE, CLASSES = 6, 3


class Quadratic(nn.Module):
    """Logits `x^T A_k x + u_k x`, with symmetric `A_k`."""

    bends: Tensor
    slopes: Tensor

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        bends = torch.randn(CLASSES, SIZE, SIZE, generator=generator, dtype=torch.float64)
        self.register_buffer("bends", (bends + bends.mT) / 2)
        self.register_buffer("slopes", torch.randn(CLASSES, SIZE, generator=generator, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("bi,kij,bj->bk", x, self.bends, x) + x @ self.slopes.mT

    def covariance(self, point: Tensor, covariance: Tensor) -> Tensor:
        """Return the logits' covariance over normal noise: `u^T S v + 2 tr(A S B S)`, `u`, `v` the gradients."""
        gradients = 2 * self.bends @ point + self.slopes
        turned = self.bends @ covariance
        return gradients @ covariance @ gradients.mT + 2 * torch.einsum("kij,lji->kl", turned, turned)


def over_replicates(network: nn.Module, point: Tensor, noise: Noise, draws: int, antithetic: bool) -> Linearization:
    """Return linearisations at one point, each with its own draws."""
    return brittle.linearize(
        brittle.Classifier(network, bounds=(-99, 99)), point.expand(2000, -1).clone(), noise=noise, draws=draws,
        antithetic=antithetic,
    )  # fmt: skip


FACTOR = torch.randn(SIZE, SIZE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("noise", [Gaussian(0.5), FactorGaussian(0.3, FACTOR)], ids=lambda noise: noise.name)
@pytest.mark.parametrize(("draws", "antithetic"), [(2, True), (10, True), (3, False)])
def test_quadratic_logits_have_their_covariance_in_the_mean(noise: Noise, draws: int, antithetic: bool) -> None:
    """The mean over 2,000 replicates lies within 5 standard errors of the truth; a right one fails once in 1e5."""
    network, point = Quadratic(), inputs(1, (SIZE,), dtype=torch.float64)[0]
    linear = over_replicates(network, point, noise, draws, antithetic)
    assert linear.quadratic_gram is not None
    by_replicate = linear.quadratic_gram * noise.sigma**2
    metric = FACTOR @ FACTOR.mT if isinstance(noise, FactorGaussian) else torch.eye(SIZE, dtype=torch.float64)
    truth = network.covariance(point, noise.sigma**2 * metric)
    error = by_replicate.std(dim=0) / len(by_replicate) ** 0.5
    assert bool(((by_replicate.mean(0) - truth).abs() <= 5 * error).all())
    left_out = (linear.gram.mean(0) * noise.sigma**2 - truth).diagonal().abs()
    assert bool((left_out > 20 * error.diagonal()).all()) or not antithetic


@pytest.mark.parametrize(("draws", "antithetic"), [(2, True), (4, True), (3, False)])
@pytest.mark.parametrize("sigma", [0.2, 5.0])
def test_the_quadratic_gram_is_positive_semidefinite(draws: int, antithetic: bool, sigma: float) -> None:
    """Far from the point the gradients of different draws often point apart, and their products alone are negative."""
    x = inputs(50, dtype=torch.float64)
    classifier = brittle.Classifier(small_network(dtype=torch.float64))
    linear = brittle.linearize(classifier, x, noise=Gaussian(sigma), draws=draws, antithetic=antithetic)
    assert linear.quadratic_gram is not None
    eigenvalues = torch.linalg.eigvalsh(linear.quadratic_gram)
    assert bool((eigenvalues[..., 0] >= -1e-12 * eigenvalues[..., -1]).all())


def test_small_passes_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the Jacobians of all copies do not fit, fewer are taken together; the numbers are the same."""
    classifier, x = small_classifier(), inputs(COUNT)
    needs = [Linearize(noise=Gaussian(SIGMA), draws=draws) for draws in (20, 4)] + [Linearize()]
    together = take(needs, classifier, clean_of(classifier, x))
    monkeypatch.setattr("brittle.measure.linearize.JACOBIAN_NUMBERS", 3 * 4 * 36)
    parts = take(needs, classifier, clean_of(classifier, x))
    for need in needs:
        for name in ("gram", "quadratic_gram", "logits") if need.draws else ("gram", "logits"):
            expected, actual = getattr(together[need], name), getattr(parts[need], name)
            assert torch.allclose(expected, actual, rtol=1e-5, atol=1e-5)
