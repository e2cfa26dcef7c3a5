"""Runs of a small network over a few points."""

from __future__ import annotations

import torch
from helpers.inputs import SIGMA
from helpers.problems import small_classifier

import brittle
from brittle.scores import MMSE, LogitMargin, Moments, Softmax, Taylor

COUNT = 20
SCORES = [Softmax(), LogitMargin(), Taylor(SIGMA), MMSE(SIGMA, draws=4), Moments(SIGMA, draws=8)]


def labels(count: int = COUNT) -> torch.Tensor:
    return torch.arange(count) % 4


def run(x: torch.Tensor, y: torch.Tensor | None, classifier: brittle.Classifier | None = None, **options):
    return brittle.score(classifier or small_classifier(), (x, y), options.pop("scores", SCORES), **options)
