"""Linear models are exact: the end-to-end oracle of every estimator."""

from __future__ import annotations

import pytest
import torch
from helpers.laws import estimate
from helpers.linear_truth import SIGMA, SIZE, margin_problem
from helpers.problems import inputs, linear_network

import brittle
from brittle.noise import Gaussian
from brittle.scores import FirstOrderMargin, Softmax, Taylor, TaylorMVS


def test_softmax_equals_taylor_mvs_under_the_condition_of_the_lemma() -> None:
    """Rows of the weights at the corners of a simplex: all margins have one gradient norm, and T = sigma times it."""
    network = linear_network(5, 5)
    with torch.no_grad():
        network.weight.copy_(2.0 * torch.eye(5, dtype=torch.float64))
    x = inputs(10, (5,), dtype=torch.float64)
    temperature = SIGMA * 2.0 * 2.0**0.5
    classifier = brittle.Classifier(network)
    one, other = (estimate(classifier, x, score).value for score in (Softmax(temperature), TaylorMVS(SIGMA)))
    assert float((one - other).abs().max()) <= 1e-12


@pytest.mark.parametrize(("norm", "dual"), [("l2", 2), ("linf", 1), ("l1", float("inf"))])
def test_first_order_margin_is_the_distance(norm: str, dual: int) -> None:
    network = linear_network(4, SIZE)
    x = inputs(6, (SIZE,), dtype=torch.float64)
    found = estimate(brittle.Classifier(network), x, FirstOrderMargin(norm)).value
    for number, point in enumerate(x):
        margin, gradient = margin_problem(network, point)
        assert float(found[number]) == pytest.approx(float((margin / gradient.norm(dual, dim=1)).min()), rel=1e-12)


def test_units_do_not_matter() -> None:
    """The same network declared for [0, 1], [-1, 1] and [0, 255] with sigma in its units: the same flips."""
    network = linear_network(4, SIZE)
    x = inputs(5, (SIZE,), dtype=torch.float64)
    values = []
    for low, high in [(0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)]:
        scale = high - low
        classifier = brittle.Classifier(network, (low, high), mean=low, std=scale)
        values.append(estimate(classifier, x * scale + low, Taylor(noise=Gaussian(SIGMA * scale))).value)
    assert all(float((value - values[0]).abs().max()) <= 1e-6 for value in values)
