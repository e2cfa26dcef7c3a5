"""MMSE: on linear networks it is Taylor."""

from __future__ import annotations

import pytest
import torch
from helpers.laws import estimate
from helpers.linear_truth import SIGMA, SIZE
from helpers.problems import inputs, linear_network

import brittle
from brittle.scores import MMSE, MMSEMVS, MMSEMargin, Taylor, TaylorMVS


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("draws", [2, 6])
def test_mmse_with_antithetic_pairs_equals_taylor(classes: int, draws: int) -> None:
    classifier = brittle.Classifier(linear_network(classes, SIZE))
    x = inputs(6, (SIZE,), dtype=torch.float64)
    for smoothed, at_point in [(MMSE, Taylor), (MMSEMVS, TaylorMVS)]:
        one = estimate(classifier, x, smoothed(SIGMA, draws=draws)).value
        other = estimate(classifier, x, at_point(SIGMA)).value
        assert float((one - other).abs().max()) <= 1e-9


def test_mmse_margin_of_two_classes_equals_taylor() -> None:
    classifier = brittle.Classifier(linear_network(2, SIZE))
    x = inputs(6, (SIZE,), dtype=torch.float64)
    one, other = (estimate(classifier, x, score).value for score in (MMSEMargin(SIGMA, draws=2), Taylor(SIGMA)))
    assert float((one - other).abs().max()) <= 1e-12
