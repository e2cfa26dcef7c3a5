"""Fixtures that several files of this room share."""

from __future__ import annotations

import pytest
from helpers.calibrated import with_margins
from helpers.stand_ins import SMALL, Misleading, everything, margin
from helpers.tables import first_points

import brittle
from brittle.data import array_points
from brittle.extensions.detector.surrogate import Surrogate
from brittle.scores import LogitMargin


@pytest.fixture(scope="session")
def classifier() -> brittle.Classifier:
    return brittle.Classifier(Misleading())


@pytest.fixture(scope="session")
def learned(classifier: brittle.Classifier) -> Surrogate:
    x = everything()
    run = with_margins(brittle.score(classifier, x, [LogitMargin()]), margin(x).tolist())
    return Surrogate.fit_run(first_points(run, 400), classifier, array_points(x, None, bounds=(0, 1)), **SMALL)
