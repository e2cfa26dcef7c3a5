"""L0, the number of changed features: exact where that can be computed, a whole number, and only within bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers import problems
from helpers.attacked import run
from torch import Tensor, nn

import brittle
from brittle.errors import ParameterError
from brittle.measure.nearest import ATTACKS
from brittle.scores import InputMargin

SUITED = ("best", *(name for name, attack in ATTACKS.items() if "l0" in attack.norms))


def fewest(network: nn.Linear, point: Tensor) -> float:
    """Return how many coordinates of a linear network have to move to their bounds, the largest gains first."""
    weight, logits = network.weight.detach().double(), network(point[None])[0].detach().double()
    label, best = int(logits.argmax()), np.inf
    for rival in set(range(len(logits))) - {label}:
        slope = weight[label] - weight[rival]
        gains = slope.abs() * torch.where(slope > 0, point, 1 - point)
        fallen = gains.sort(descending=True).values.cumsum(0) > logits[label] - logits[rival]
        best = min(best, float(fallen.int().argmax()) + 1 if bool(fallen.any()) else np.inf)
    return best


@pytest.mark.parametrize("attack", ["best", "exchange"])
def test_linear_models_need_as_many_as_the_greatest_gains(attack: str) -> None:
    network = problems.linear_network(3, 30, dtype=torch.float64)
    points = problems.inputs(40, (30,), dtype=torch.float64)
    distances = run(brittle.Classifier(network, bounds=(0, 1)), points, norm="l0", attack=attack).distance.numpy()
    truth = np.array([fewest(network, point) for point in points])
    assert (np.isinf(distances) == np.isinf(truth)).all()
    assert (distances >= truth).all()
    assert np.mean(distances == truth) >= 0.9


@pytest.mark.parametrize("attack", SUITED)
def test_the_distance_counts_changed_features_and_holds_alone(attack: str) -> None:
    classifier, points = problems.small_classifier(), problems.inputs(6)
    nearest = run(classifier, points, norm="l0", attack=attack, effort="fast")
    is_found = nearest.distance.isfinite()
    assert is_found.any()
    assert nearest.distance[is_found].tolist() == (nearest.points != points).flatten(1).sum(dim=1)[is_found].tolist()
    assert ((nearest.points >= 0) & (nearest.points <= 1)).all()
    alone = torch.cat([classifier(point[None]).argmax(dim=1) for point in nearest.points])
    assert torch.equal(alone[is_found], nearest.predicted[is_found])
    assert (alone[is_found] != classifier(points).argmax(dim=1)[is_found]).all()


def test_without_gradients_features_are_put_back_in_blocks() -> None:
    network = problems.small_network()
    classifier = brittle.Classifier(lambda x: network(x.detach()).detach(), bounds=(0, 1))
    nearest = run(classifier, problems.inputs(4), norm="l0", effort="fast")
    assert nearest.masked.all()
    is_found = nearest.distance.isfinite()
    assert is_found.sum() >= 2
    assert (nearest.distance[is_found] < 0.5 * nearest.by_attack["segments"][is_found]).all()


@pytest.mark.parametrize("bounds", ["none", (0, float("inf"))])
def test_without_finite_bounds_it_is_refused(bounds: object) -> None:
    with pytest.raises(ParameterError, match="l0"):
        run(brittle.Classifier(problems.small_network(), bounds=bounds), problems.inputs(2), norm="l0")
    with pytest.raises(ParameterError, match="l0"):
        InputMargin("l0", bounded=False)


def test_values_outside_the_bounds_by_rounding_are_no_change() -> None:
    """`z_1 - z_0 = x_59 - 0.5`: one value has to change, for any values of the others."""
    layer = nn.Linear(60, 2)
    with torch.no_grad():
        layer.weight.zero_()[1, 59] = 1
        layer.bias.copy_(torch.tensor([0.5, 0.0]))
    points = torch.zeros(1, 60)
    points[0, :50] = 1 + 2**-22
    nearest = brittle.nearest(brittle.Classifier(layer, bounds=(0, 1)), points, norm="l0", effort="fast")
    assert nearest.distance.tolist() == [1.0]
    assert int((nearest.points != points).sum()) == 1
