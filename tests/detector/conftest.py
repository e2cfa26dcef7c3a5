"""Fixtures that several files of this room share."""

from __future__ import annotations

import pytest
import torch
from helpers.calibrated import FORWARD, classifier, points, with_margins

import brittle
from brittle.detector import Detector
from brittle.scores.feature_margin import feature_margin
from brittle.store.table import Table


@pytest.fixture(scope="session")
def table() -> Table:
    """A run of a linear classifier with the exact margins."""
    subject = classifier()
    run = brittle.score(subject, points(400), FORWARD)
    with torch.no_grad():
        logits = subject(points(400))
    margins = feature_margin(logits, subject.head.weight.double() / 0.3, "linf")
    return with_margins(run, margins.tolist())


@pytest.fixture(scope="session")
def detector(table: Table) -> Detector:
    return Detector.fit(table, epsilon=0.15, tpr=0.9, seed=1)
