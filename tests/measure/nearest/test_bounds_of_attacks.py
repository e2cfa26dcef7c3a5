"""Attacks and certificates keep to bounds per feature, and reach as far without bounds as with wide ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.attacked import PAIRS
from helpers.bounded_networks import certified

import brittle
from brittle.measure.nearest.norms import NORMS
from brittle.model.bounds import BoundsLike

LOWER = np.array([0.0, -np.inf, -2.0, 0.0, 3.0, -np.inf])
UPPER = np.array([0.5, 0.1, 2.0, np.inf, 3.0, np.inf])
"""Narrow, of one side, wide, of the other side, a constant, none."""

SUITED = [(norm, attack) for attack, norm in PAIRS if attack != "best"]


def points(count: int) -> torch.Tensor:
    drawn = torch.randn(count, 6, generator=torch.Generator().manual_seed(3))
    return torch.from_numpy(np.clip(drawn.numpy(), LOWER, UPPER)).float()


def linear(bounds: BoundsLike) -> brittle.Classifier:
    torch.manual_seed(5)
    return brittle.Classifier(torch.nn.Linear(6, 3).eval(), bounds=bounds)


def distances(classifier: brittle.Classifier, x: torch.Tensor, norm: str, lower, upper) -> np.ndarray:
    """The distance to the nearest input of another class in the box, in NumPy.

    Within `r` the margin `h_j` of a linear network falls by at most `sum |w_i| min(r, room_i)` in `linf`; in `l2` by
    that at `clip(t w)` for the `t` at which this has length `r`: both by bisection. In `l1` the coordinates move one
    after another, the steepest first.
    """
    layer = classifier.model
    assert isinstance(layer, torch.nn.Linear)
    w, b = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    found = []
    for point in x.double().numpy():
        logits = w @ point + b
        own = int(logits.argmax())
        best = np.inf
        for other in set(range(len(b))) - {own}:
            slope, height = w[own] - w[other], logits[own] - logits[other]
            room = np.where(slope > 0, point - lower, upper - point)
            best = min(best, _radius(np.abs(slope), room, height, norm))
        found.append(best)
    return np.array(found)


def _radius(slope: np.ndarray, room: np.ndarray, height: float, norm: str) -> float:
    if norm == "l1":
        return _knapsack(slope, room, height)
    low, high = 0.0, 1e6
    step = np.ones_like(slope) if norm == "linf" else slope
    if (slope * np.minimum(high * step, room)).sum() < height:
        return np.inf
    for _ in range(200):
        middle = (low + high) / 2
        reached = (slope * np.minimum(middle * step, room)).sum() >= height
        low, high = (low, middle) if reached else (middle, high)
    moved = np.minimum(high * step, room)
    return float(moved.max() if norm == "linf" else np.linalg.norm(moved))


def _knapsack(slope: np.ndarray, room: np.ndarray, height: float) -> float:
    spent = 0.0
    for place in np.argsort(-slope):
        if slope[place] * room[place] >= height:
            return spent + height / float(slope[place])
        height -= float(slope[place] * room[place])
        spent += float(room[place])
    return np.inf


@pytest.mark.parametrize(("norm", "attack"), SUITED)
def test_no_counterexample_lies_outside_the_bounds_of_its_features(norm: str, attack: str) -> None:
    torch.manual_seed(0)
    layers = torch.nn.Linear(6, 20), torch.nn.Tanh(), torch.nn.Linear(20, 3)
    classifier = brittle.Classifier(torch.nn.Sequential(*layers).eval(), bounds=(LOWER, UPPER))
    x = points(12)
    found = brittle.nearest(classifier, x, norm=norm, attack=attack, effort="fast")
    there = found.points.double().numpy()
    assert (there >= LOWER.astype(np.float32)).all()
    assert (there <= UPPER.astype(np.float32)).all()
    assert (found.predicted >= 0).sum() >= 4
    measured = NORMS[norm].length(found.points.double() - x.double()).numpy()
    reached = (found.predicted >= 0).numpy()
    assert found.distance.numpy()[reached] == pytest.approx(measured[reached], rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_distances_in_a_box_of_each_feature_are_exact_for_a_linear_network(norm: str) -> None:
    classifier, x = linear((LOWER, UPPER)), points(10)
    truth = distances(classifier, x, norm, LOWER, UPPER)
    found = brittle.nearest(classifier, x, norm=norm).distance.numpy()
    assert np.isfinite(truth).any()
    assert found == pytest.approx(truth, rel=2e-3)


@pytest.mark.parametrize("norm", NORMS)
def test_without_bounds_what_is_found_is_as_near_as_in_wide_ones(norm: str) -> None:
    x = points(10)
    truth = distances(linear("none"), x, norm, np.full(6, -np.inf), np.full(6, np.inf))
    free, wide = (brittle.nearest(linear(bounds), x, norm=norm, effort="fast") for bounds in ("none", (-1e3, 1e3)))
    assert free.distance.numpy() == pytest.approx(truth, rel=1e-3)
    assert (free.distance <= wide.distance * (1 + 1e-3)).all()


@pytest.mark.parametrize(("attack", "size"), [("segments", 1e-3), ("segments", 1e4), ("rays", 1e4)])
def test_attacks_without_gradients_find_something_without_bounds_in_any_unit(attack: str, size: float) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 3, bias=False).eval()
    classifier = brittle.Classifier(lambda x: layer(x).detach(), bounds="none")
    found = brittle.nearest(classifier, size * points(8), attack=attack, effort="fast")
    assert (found.predicted >= 0).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["per feature", "none"])
def test_no_certificate_reaches_beyond_a_counterexample(norm: str, kind: str) -> None:
    lower, upper = (LOWER, UPPER) if kind == "per feature" else (np.full(6, -np.inf), np.full(6, np.inf))
    classifier, x = linear((lower, upper)), points(5)
    truth = distances(classifier, x, norm, lower, upper)
    proven = certified(classifier, x, norm).radius.numpy()
    assert (proven <= truth * (1 + 1e-9)).all()
    if norm == "linf" or kind == "none":
        known = np.isfinite(truth)
        assert proven[known] == pytest.approx(truth[known], rel=0.03)
