"""Laws of the search for the nearest input with another prediction, over every attack and norm."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers import problems
from helpers.attacked import PAIRS, linear_margin, run
from torch import Tensor, nn

import brittle
from brittle.measure.nearest import ATTACKS
from brittle.measure.nearest.norms import NORMS

GUIDED = [pair for pair in PAIRS if pair[0] == "best" or ATTACKS[pair[0]].guided]


@pytest.mark.parametrize(
    ("attack", "norm", "classes"),
    [
        pytest.param(*pair, classes, marks=() if (number + place) % 2 == 0 else pytest.mark.slow)
        for number, pair in enumerate(GUIDED)
        for place, classes in enumerate((2, 10))
    ],
)
def test_linear_models_are_exact(attack: str, norm: str, classes: int) -> None:
    network = problems.linear_network(classes, 12, seed=classes, dtype=torch.float32)
    points = torch.randn(60, 12, generator=torch.Generator().manual_seed(1))
    nearest = run(brittle.Classifier(network), points, attack=attack, norm=norm, bounded=False)
    exact = linear_margin(network, points, norm)
    assert (nearest.distance >= exact * (1 - 1e-5) - 1e-6).all()
    assert (nearest.distance <= exact * 1.001 + 1e-6).all()
    assert not nearest.masked.any()


@pytest.mark.every_other
@pytest.mark.parametrize(("attack", "norm"), PAIRS)
@pytest.mark.usefixtures("few_queries")
def test_a_box_in_the_way_is_respected_and_counted(attack: str, norm: str) -> None:
    """`z_1 - z_0 = 4 x_1 + x_2 - 3`; at (0.9, 0.1, 0.5) the box stops `x_1` before the boundary in no norm."""
    network = nn.Linear(3, 2)
    with torch.no_grad():
        network.weight.copy_(torch.tensor([[0.0, 0.0, 0.0], [4.0, 1.0, 0.0]]))
        network.bias.copy_(torch.tensor([0.0, -4.5]))
    nearest = run(brittle.Classifier(network), torch.tensor([[0.9, 0.1, 0.5]]), attack=attack, norm=norm, effort="fast")
    exact = {"linf": 0.4, "l2": (0.1**2 + 0.4**2) ** 0.5, "l1": 0.5}[norm]
    assert float(nearest.distance) >= exact * (1 - 1e-5)
    if (attack, norm) in GUIDED:
        assert float(nearest.distance) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("norm", list(NORMS))
def test_the_inputs_are_those_of_the_score(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For any number of points that are searched together."""
    monkeypatch.setattr("brittle.measure.forward.ROWS", 10)
    classifier, points = problems.small_classifier(), problems.inputs(12)
    nearest = brittle.nearest(classifier, points, norm=norm, effort="fast")
    margins = brittle.score(classifier, points, [brittle.scores.InputMargin(norm, effort="fast")]).frame(whole=True)
    column = margins.columns[margins.columns.str.startswith("input_margin(")][0]
    assert nearest.distance.tolist() == margins[column].tolist()
    assert nearest.points.shape == points.shape
    for point, predicted in zip(nearest.points, nearest.predicted.tolist(), strict=True):
        assert int(classifier(point[None]).argmax()) == predicted


@pytest.mark.parametrize(
    ("points", "options", "fact"),
    [
        (problems.inputs(3) * 255, {}, "3 of 3"),
        (problems.inputs(3)[:0], {}, "at least 1"),
        (problems.inputs(3), {"norm": "l3"}, "l3"),
        (problems.inputs(3), {"attack": "pgd"}, "pgd"),
        (problems.inputs(3), {"effort": "heroic"}, "heroic"),
        (problems.inputs(3), {"attack": "sparse_descent", "norm": "linf"}, "sparse_descent"),
        (problems.inputs(3), {"attack": "exchange"}, "l0"),
    ],
)
def test_requests_without_a_search_are_refused(points: Tensor, options: dict[str, Any], fact: str) -> None:
    with pytest.raises(brittle.errors.BrittleError, match=fact):
        brittle.nearest(problems.small_classifier(), points, **options)
