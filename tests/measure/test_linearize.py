"""Logits and Gram: those of the Jacobian, in blocks, over noise, and with the nearest classes alone."""

from __future__ import annotations

import pytest
import torch
from helpers.inputs import SIGMA
from helpers.measured import COUNT, clean_of, pairs_of, slow_jacobian
from helpers.problems import inputs, linear_network, small_classifier, small_network

import brittle
from brittle.measure import take
from brittle.measure.forward import ALL_CLASSES_UP_TO, KEPT_CLASSES
from brittle.noise import Gaussian
from brittle.run import plan
from brittle.scores import Taylor, TaylorMVS


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
def test_what_is_left_out_only_lowers_the_number_and_is_said(kind) -> None:
    classifier = brittle.Classifier(linear_network(120, 40))
    x = inputs(COUNT, (40,), dtype=torch.float64)
    clean = clean_of(classifier, x)
    some, all_of_them = kind(0.05), kind(0.05, classes=119)
    measured = take(plan([some, all_of_them]), classifier, clean)
    few, full = some.estimate(measured, 0.99), all_of_them.estimate(measured, 0.99)
    assert {"classes_kept"} == {brittle.estimate.Status(code).slug for code in few.status.tolist()}
    assert bool((few.value <= full.value + 1e-3).all())
