"""The clean pass: modes are put back, and rows do not matter."""

from __future__ import annotations

import torch
from helpers.inputs import SIGMA
from helpers.measured import COUNT, IDS
from helpers.problems import inputs, small_classifier, small_network

import brittle
from brittle.measure import take
from brittle.measure.forward import look
from brittle.run import plan
from brittle.scores import MMSE, MonteCarlo


def test_rows_in_a_pass_do_not_matter() -> None:
    classifier = small_classifier()
    x = inputs(COUNT)
    scores = [MonteCarlo(SIGMA, draws=40), MMSE(SIGMA, draws=6)]
    values = []
    for rows in (1, 7, 500):
        measured = take(plan(scores), classifier, look(classifier, x, IDS, 0, rows=rows))
        values.append(torch.cat([score.estimate(measured, 0.99).value for score in scores]))
    assert all(torch.allclose(value, values[0], atol=1e-5) for value in values)


def test_training_mode_and_gradients_are_put_back() -> None:
    network = small_network().train()
    brittle.linearize(brittle.Classifier(network), inputs(2))
    assert network.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in network.parameters())
