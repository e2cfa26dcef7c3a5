"""The doctor looks at models with bounds of every kind, and finds nothing wrong with a sound one."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.examined import codes

import brittle
from brittle import doctor
from brittle.data import array_points
from brittle.errors import DataError
from brittle.model.bounds import BoundsLike
from brittle.scores import InputMargin, Laplacian, MonteCarlo, Score

SPREAD = torch.tensor([1.0, 30.0, 0.2, 5.0])
SCORES: list[Score] = [InputMargin(effort="fast"), MonteCarlo(sigma=0.05, draws=20), Laplacian()]
KINDS: dict[str, BoundsLike] = {
    "none": "none",
    "per feature": ([-9.0, -300.0, -2.0, -math.inf], [9.0, math.inf, 2.0, math.inf]),
}


def subject_of(bounds: BoundsLike) -> doctor.Subject:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        rows = torch.randn(64, 4) * SPREAD
        network = torch.nn.Sequential(torch.nn.Linear(4, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3)).eval()
    classifier = brittle.Classifier(network, bounds, mean=[0.0] * 4, std=SPREAD.tolist())
    points = array_points(rows, bounds=bounds)
    return doctor.Subject(classifier, next(iter(points.batches(64))), None, SCORES, 0, 64, points)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_found_at_a_sound_model(kind: str) -> None:
    assert codes(subject_of(KINDS[kind])) == {}


def test_a_value_outside_the_bounds_of_its_feature_is_refused() -> None:
    narrow = ([-9.0, -300.0, -0.01, -math.inf], [9.0, math.inf, 2.0, math.inf])
    with pytest.raises(DataError, match=r"at the feature in place 2, outside \[-0.01, 2\]"):
        brittle.score(subject_of(narrow).classifier, subject_of("none").inputs, SCORES)
