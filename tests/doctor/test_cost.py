"""Forecasts of the cost of a run."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from helpers.examined import examined
from helpers.problems import inputs, small_network

import brittle
from brittle.doctor.settings import check_cost
from brittle.scores import MMSE, InputMargin, Laplacian, Moments, MonteCarlo, Score, Softmax, Taylor

PASSES = [
    ([Softmax()], (1, 0)),
    ([MonteCarlo(0.1, draws=30, limit=None), Moments(0.1, draws=10)], (31, 0)),
    ([Taylor(0.1), Taylor(0.2)], (1, 4)),
    ([MMSE(0.1, draws=6)], (7, 24)),
    ([Taylor(0.1), MonteCarlo(0.1, draws=20, limit=None)], (21, 4)),
    ([Laplacian()], (3, 8)),
]


def test_certificates_are_forecast_from_a_few_points() -> None:
    """The forecast multiplies the time of the first points."""
    subject = examined(small_network(), [InputMargin(certify=True)])
    with subject.classifier.evaluating():
        (sentence,) = check_cost(subject)
    assert re.search(r"certificates .+ 4 points", sentence)


@pytest.mark.parametrize(("scores", "expected"), PASSES, ids=lambda value: str(value))
def test_the_passes_of_the_estimate_are_those_of_a_run(scores: list[Score], expected: tuple[int, int]) -> None:
    forecast = examined(small_network(), scores).passes_per_point
    assert (forecast.forward, forecast.backward) == expected
    record = brittle.score(brittle.Classifier(small_network()), (inputs(16), None), scores).record
    assert record.account.passes / 16 == pytest.approx(forecast.forward + forecast.backward, rel=0.1)


def test_a_gradient_free_search_is_forecast_by_its_budget() -> None:
    network, x = small_network(), inputs(4)
    scores: list[Score] = [InputMargin(effort="fast")]

    def forward(rows: np.ndarray) -> np.ndarray:
        return network(torch.from_numpy(rows)).detach().numpy()

    classifier = brittle.Classifier(forward, arrays="numpy")
    subject = examined(classifier.model, scores)
    forecast = subject.passes_per_point
    passes = brittle.score(classifier, (x, None), scores, skip_doctor=True).record.account.passes / 4
    assert forecast.backward == 0
    assert passes <= forecast.forward <= 5 * passes, "all of its five directions, of which some cross no boundary"
