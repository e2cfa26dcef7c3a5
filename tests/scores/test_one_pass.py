"""Scores of one pass: the margin among features is the distance to the nearest other decision there."""

from __future__ import annotations

import pytest
import torch
from helpers.laws import estimate
from helpers.problems import inputs, small_network
from torch import Tensor

import brittle
from brittle.scores import FeatureMargin


@pytest.mark.parametrize(("norm", "order", "dual"), [("l2", 2.0, 2.0), ("linf", torch.inf, 1.0)])
def test_the_feature_margin_is_the_distance_to_another_decision(norm: str, order: float, dual: float) -> None:
    classifier = brittle.Classifier(small_network(dtype=torch.float64))
    x = inputs(6, dtype=torch.float64)
    margin = estimate(classifier, x, FeatureMargin(norm)).value
    with torch.no_grad():
        logits, features = classifier.observe(x)
    for row in range(len(x)):
        predicted = int(logits[row].argmax())
        steps = [
            _step_to(features[row], logits[row], classifier.head.weight.detach(), predicted, competitor, dual)
            for competitor in range(4)
            if competitor != predicted
        ]
        lengths = torch.stack([torch.linalg.vector_norm(step, order) for step in steps])
        assert float(margin[row]) == pytest.approx(float(lengths.min()), rel=1e-9)
        nearest = steps[int(lengths.argmin())]
        assert int(classifier.head.logits(features[row] + 0.999 * nearest).argmax()) == predicted
        assert int(classifier.head.logits(features[row] + 1.001 * nearest).argmax()) != predicted


def _step_to(features: Tensor, logits: Tensor, weight: Tensor, predicted: int, competitor: int, dual: float) -> Tensor:
    """Return the shortest step from the features to equal logits of two classes."""
    normal = weight[competitor] - weight[predicted]
    gap = logits[predicted] - logits[competitor]
    direction = normal / normal.norm() if dual == 2.0 else normal.sign()
    return direction * gap / (normal @ direction)
