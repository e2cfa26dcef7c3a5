"""Measurements together: what they share, and what is refused."""

from __future__ import annotations

import pytest
import torch
from helpers.inputs import SIGMA
from helpers.measured import COUNT, IDS
from helpers.problems import inputs, small_classifier, small_network

import brittle
from brittle.errors import ModelError, ParameterError
from brittle.measure import take
from brittle.measure.forward import look
from brittle.noise import Gaussian
from brittle.run import plan
from brittle.scores import FirstOrderMargin, Taylor, TaylorMVS


def test_a_sweep_over_sigma_costs_one_jacobian() -> None:
    scores = [kind(sigma) for kind in (Taylor, TaylorMVS) for sigma in torch.linspace(0.01, 1.0, 20).tolist()]
    needs = plan([*scores, FirstOrderMargin()])
    assert len(needs) == 1
    classifier = small_classifier()
    clean = look(classifier, inputs(COUNT), IDS, 0, differentiate=True)
    take(needs, classifier, clean)
    assert classifier.passes == COUNT * (1 + 4)


class Detached(torch.nn.Module):
    """Cuts its input off from the gradient."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach().requires_grad_(True)


def test_misuse() -> None:
    classifier = small_classifier()
    with pytest.raises(ParameterError, match="needs both noise and draws"):
        brittle.linearize(classifier, inputs(1), noise=Gaussian(SIGMA))
    with pytest.raises(ParameterError, match="at least 1 competitor"):
        brittle.linearize(classifier, inputs(1), classes=0)
    inside = brittle.Classifier(torch.nn.Sequential(Detached(), small_network()))
    with pytest.raises(ModelError, match="use scores without gradients"):
        brittle.linearize(inside, inputs(1))
    detached = brittle.Classifier(lambda x: small_network()(x).detach())
    with pytest.raises(ModelError, match="use scores without gradients"):
        brittle.linearize(detached, inputs(1))
