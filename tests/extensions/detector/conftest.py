"""Fixtures that several files of this room share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.calibrated import FORWARD, classifier, points, with_kept, with_margins
from scipy.stats import norm

import brittle
from brittle.extensions.detector.detector import Detector
from brittle.scores.one_pass import feature_margin
from brittle.store.table import Table


@pytest.fixture(scope="session")
def table() -> Table:
    """Score a linear classifier, with the exact margins."""
    subject = classifier()
    run = brittle.score(subject, points(400), FORWARD)
    with torch.no_grad():
        logits = subject(points(400))
    margins = feature_margin(logits, subject.head.weight.double() / 0.3, "linf")
    return with_margins(run, margins.tolist())


@pytest.fixture(scope="session")
def noise_table() -> Table:
    """Score the same classifier, with predictions that break, hold, or near the limit are undecided."""
    subject = classifier()
    run = brittle.score(subject, points(400), FORWARD)
    with torch.no_grad():
        logits = subject(points(400))
    distances = feature_margin(logits, subject.head.weight.detach().double() / 0.3, "l2").numpy()
    survival = norm.cdf(distances / 0.1 * np.random.default_rng(0).lognormal(0.0, 0.5, 400))
    return with_kept(run, survival - 0.02, np.minimum(survival + 0.02, 1.0))


@pytest.fixture(scope="session")
def noise_detector(noise_table: Table) -> Detector:
    return Detector.fit(noise_table, limit=0.9, tpr=0.9, seed=1)


@pytest.fixture(scope="session")
def detector(table: Table) -> Detector:
    return Detector.fit(table, epsilon=0.15, tpr=0.9, seed=1)
