"""Scores of one pass: the margin in the features is the distance to the nearest other decision there."""

from __future__ import annotations

import pytest
import torch
from helpers.laws import estimate
from helpers.problems import inputs, small_network
from torch import Tensor

import brittle
from brittle.scores import FeatureMargin


@pytest.mark.parametrize(("norm", "order", "dual"), [("l2", 2.0, 2.0), ("linf", torch.inf, 1.0)])
def test_feature_margin_is_the_distance_to_the_nearest_other_decision(norm: str, order: float, dual: float) -> None:
    classifier = brittle.Classifier(small_network(dtype=torch.float64))
    x = inputs(6, dtype=torch.float64)
    margin = estimate(classifier, x, FeatureMargin(norm)).value
    with torch.no_grad():
        logits, features = classifier.observe(x)
    for row in range(len(x)):
        own = int(logits[row].argmax())
        ways = [
            _way_to(features[row], logits[row], classifier.head.weight.detach(), own, other, dual)
            for other in range(4)
            if other != own
        ]
        lengths = torch.stack([torch.linalg.vector_norm(way, order) for way in ways])
        assert float(margin[row]) == pytest.approx(float(lengths.min()), rel=1e-9)
        nearest = ways[int(lengths.argmin())]
        assert int(classifier.head.logits(features[row] + 0.999 * nearest).argmax()) == own
        assert int(classifier.head.logits(features[row] + 1.001 * nearest).argmax()) != own


def _way_to(features: Tensor, logits: Tensor, weight: Tensor, own: int, other: int, dual: float) -> Tensor:
    """The shortest step from the features to equal logits of two classes."""
    normal = weight[other] - weight[own]
    gap = logits[own] - logits[other]
    direction = normal / normal.norm() if dual == 2.0 else normal.sign()
    return direction * gap / (normal @ direction)
