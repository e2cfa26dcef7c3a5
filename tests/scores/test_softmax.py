"""The multivariate sigmoid: where its condition holds, it is Taylor's."""

from __future__ import annotations

import torch
from helpers.laws import estimate
from helpers.linear_truth import SIGMA
from helpers.problems import inputs, linear_network

import brittle
from brittle.scores import Softmax, TaylorMVS


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
