"""Attacks and certificates keep to bounds per feature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.attacked import PAIRS
from helpers.bounded_networks import certified
from scipy.optimize import brentq, linprog

import brittle
from brittle.measure.nearest.norms import NORMS
from brittle.model.bounds import BoundsLike

LOWER = np.array([0.0, -np.inf, -2.0, 0.0, 3.0, -np.inf])
UPPER = np.array([0.5, 0.1, 2.0, np.inf, 3.0, np.inf])
"""Narrow, upper only, wide, lower only, a constant, none."""

SUITED = [(norm, attack) for attack, norm in PAIRS if attack != "best"]


def points(count: int) -> torch.Tensor:
    drawn = torch.randn(count, 6, generator=torch.Generator().manual_seed(3))
    return torch.from_numpy(np.clip(drawn.numpy(), LOWER, UPPER)).float()


def linear(bounds: BoundsLike) -> brittle.Classifier:
    torch.manual_seed(5)
    return brittle.Classifier(torch.nn.Linear(6, 3).eval(), bounds=bounds)


def distances(classifier: brittle.Classifier, x: torch.Tensor, norm: str, lower, upper) -> np.ndarray:
    """Return the distance to the nearest input of another class of a linear network in the box, by SciPy."""
    layer = classifier.model
    assert isinstance(layer, torch.nn.Linear)
    w, b = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    smallest = []
    for point in x.double().numpy():
        logits = w @ point + b
        label = int(logits.argmax())
        rivals = [rival for rival in range(len(b)) if rival != label]
        room = lower - point, upper - point
        smallest.append(min(_nearest(w[label] - w[j], logits[label] - logits[j], *room, norm) for j in rivals))
    return np.array(smallest)


def _nearest(slope: np.ndarray, height: float, low: np.ndarray, high: np.ndarray, norm: str) -> float:
    """Solve `min ||d||`, `slope . d <= -height` in a box: a linear program, or the clipped multiple of the slope."""
    size = len(slope)
    low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)  # a point in single precision may lie outside by a rounding
    if norm == "l2":
        room = np.where(slope > 0, -low, high)
        fallen = lambda t: float((np.abs(slope) * np.minimum(t * np.abs(slope), room)).sum()) - height  # noqa: E731
        if fallen(1e9) < 0:
            return np.inf
        return float(np.linalg.norm(np.minimum(brentq(fallen, 0, 1e9, xtol=1e-14) * np.abs(slope), room)))  # type: ignore[operator]
    if norm == "l1":
        ends = [(0, end) for end in high] + [(0, -end) for end in low]
        solution = linprog(np.ones(2 * size), [[*slope, *-slope]], [-height], bounds=ends)
    else:  # the last variable is the largest change
        sides = np.block([[np.eye(size), -np.ones((size, 1))], [-np.eye(size), -np.ones((size, 1))]])
        rows, limits = np.vstack([sides, [*slope, 0]]), [*np.zeros(2 * size), -height]
        solution = linprog(np.eye(size + 1)[size], rows, limits, bounds=[*zip(low, high, strict=True), (0, None)])
    return float(solution.fun) if solution.success else np.inf


@pytest.mark.every_other
@pytest.mark.parametrize(("norm", "attack"), SUITED)
def test_no_counterexample_leaves_the_bounds_of_its_features(norm: str, attack: str) -> None:
    torch.manual_seed(0)
    layers = torch.nn.Linear(6, 20), torch.nn.Tanh(), torch.nn.Linear(20, 3)
    classifier = brittle.Classifier(torch.nn.Sequential(*layers).eval(), bounds=(LOWER, UPPER))
    x = points(12)
    nearest = brittle.nearest(classifier, x, norm=norm, attack=attack, effort="fast")
    nearest_points = nearest.points.double().numpy()
    assert (nearest_points >= LOWER.astype(np.float32)).all()
    assert (nearest_points <= UPPER.astype(np.float32)).all()
    assert (nearest.predicted >= 0).sum() >= 4
    measured = NORMS[norm].length(nearest.points.double() - x.double()).numpy()
    reached = (nearest.predicted >= 0).numpy()
    assert nearest.distance.numpy()[reached] == pytest.approx(measured[reached], rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_distances_within_bounds_per_feature_are_exact(norm: str) -> None:
    classifier, x = linear((LOWER, UPPER)), points(10)
    truth = distances(classifier, x, norm, LOWER, UPPER)
    nearest = brittle.nearest(classifier, x, norm=norm).distance.numpy()
    assert np.isfinite(truth).any()
    assert nearest == pytest.approx(truth, rel=2e-3)


@pytest.mark.parametrize(("attack", "size"), [("segments", 1e-3), ("rays", 1e4)])
def test_unguided_attacks_work_without_bounds_in_any_unit(attack: str, size: float) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(6, 3, bias=False).eval()
    classifier = brittle.Classifier(lambda x: layer(x).detach(), bounds="none")
    nearest = brittle.nearest(classifier, size * points(8), norm="linf", attack=attack, effort="fast")
    assert (nearest.predicted >= 0).all()


@pytest.mark.parametrize("norm", NORMS)
def test_no_certificate_reaches_beyond_a_counterexample(norm: str) -> None:
    classifier, x = linear((LOWER, UPPER)), points(5)
    truth = distances(classifier, x, norm, LOWER, UPPER)
    proven = certified(classifier, x, norm).radius.numpy()
    assert (proven <= truth * (1 + 1e-9)).all()
    if norm == "linf":
        is_finite = np.isfinite(truth)
        assert proven[is_finite] == pytest.approx(truth[is_finite], rel=0.03)
