"""The points that are learned from: what is dropped, and what is clipped."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from helpers.calibrated import with_margins
from helpers.stand_ins import margin, points, small
from torch import Tensor

import brittle
from brittle.data import array_points
from brittle.detector.pseudo_margin import PseudoMargin
from brittle.scores import LogitMargin


@pytest.mark.parametrize("labels", [None, torch.arange(60) % 2])
def test_data_are_taken_as_they_are_scored(classifier: brittle.Classifier, labels: Tensor | None) -> None:
    x = points(60, seed=0)
    data = x if labels is None else (x, labels)
    run = with_margins(brittle.score(classifier, data, [LogitMargin()]), margin(x).tolist())
    settings = small(epochs=2)
    learned = PseudoMargin.fit_run(run, classifier, data, **settings)
    assert (
        learned.digest
        == PseudoMargin.fit_run(run, classifier, array_points(x, labels, bounds=(0, 1)), **settings).digest
    )
    assert len(learned.points) == 60


def test_what_is_dropped_and_clipped() -> None:
    x = points(100, seed=0)
    distance = margin(x)
    distance[:5] = math.nan
    distance[5:9] = math.inf
    x[9, 0] = math.nan
    recipe = PseudoMargin.fit(x, distance, **small(epochs=2)).recipe
    usable = distance[10:].numpy()
    assert (recipe.points, recipe.dropped) == (94, 6)
    assert recipe.scale == pytest.approx(np.quantile(usable, 0.99))
    assert recipe.clipped == 4 + int((usable > recipe.scale).sum())
