"""The nearest margin, smoothed over noise."""

from __future__ import annotations

import pytest
import torch
from helpers.inputs import SIGMA
from helpers.measured import clean_of, pairs_of
from helpers.problems import inputs, small_network

import brittle
from brittle.measure import NearestMargin
from brittle.noise import Gaussian


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
