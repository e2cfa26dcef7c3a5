"""The last linear layer: located, named, missing, and used by scores."""

from __future__ import annotations

import pytest
import torch
from helpers.artefacts import refused
from helpers.laws import estimate
from helpers.problems import Wrapped, inputs, small_network
from torch import nn

import brittle
from brittle.measure import Features
from brittle.measure.forward import look
from brittle.scores import FeatureMargin


def export(network: nn.Module) -> nn.Module:
    batch = torch.export.Dim("batch")
    return torch.export.export(network, (inputs(3),), dynamic_shapes=({0: batch},)).module()


@pytest.fixture(params=["module", "exported"])
def network(request: pytest.FixtureRequest) -> nn.Module:
    network = small_network()
    return export(network) if request.param == "exported" else network


def test_the_head_gives_the_logits(network: nn.Module) -> None:
    classifier = brittle.Classifier(network)
    logits, features = classifier.observe(inputs(5))
    assert torch.equal(logits, classifier(inputs(5)))
    assert features.shape == (5, 16)
    assert torch.allclose(classifier.head.logits(features), logits, atol=1e-5)
    assert classifier.head.name == "5"


def test_features_take_one_forward_pass(network: nn.Module) -> None:
    classifier = brittle.Classifier(network)
    clean = look(classifier, inputs(5), list("abcde"), seed=0, observe=True)
    Features()(classifier, clean)
    assert classifier.passes == 5


def test_a_layer_can_be_named_and_must_give_the_logits(network: nn.Module) -> None:
    assert brittle.Classifier(network, head="5").head.name == "5"
    for name, match in (("fc", r"'fc'.*3, 5"), ("3", "'3'")):
        refused("no_head", match, brittle.Classifier(network, head=name).observe, inputs(2))
    changed = Wrapped(lambda x, logits: logits.tanh())
    refused("no_head", r"network\.5", brittle.Classifier(changed).observe, inputs(2))


def test_one_logit_is_a_head_of_two_classes() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 1))
    classifier = brittle.Classifier(network, outputs="binary-logit")
    with torch.no_grad():
        logits, features = classifier.observe(inputs(4))
    assert torch.allclose(classifier.head.logits(features).detach(), logits, atol=1e-6)
    margin = estimate(classifier, inputs(4), FeatureMargin()).value
    weight = network[3].weight.detach().double()  # pyright: ignore[reportCallIssue] a layer of a known kind
    assert torch.allclose(margin, logits[:, 1].abs().double() / weight.norm(), rtol=1e-6)
