"""Moments: the interval covers on linear networks."""

from __future__ import annotations

import pytest
import torch
from helpers.laws import estimate
from helpers.linear_truth import SIGMA, SIZE
from helpers.problems import inputs, linear_network

import brittle
from brittle.scores import Moments, Taylor


@pytest.mark.parametrize("draws", [16, 64])
def test_moments_interval_covers_on_a_linear_model(draws: int) -> None:
    """2,000 replicates at 99%, one point each, fail above 52 misses."""
    classifier = brittle.Classifier(linear_network(3, SIZE))
    x = inputs(1, (SIZE,), seed=2, dtype=torch.float64)
    truth = float(estimate(classifier, x, Taylor(SIGMA)).value[0])
    many = x.expand(2000, -1)
    found = estimate(classifier, many, Moments(SIGMA, draws=draws))
    missed = int(((found.low > truth) | (found.high < truth)).sum())
    assert missed <= 52
