"""Scores that are examined on planted boundaries."""

from __future__ import annotations

import torch
from helpers.problems import inputs
from torch import nn

import brittle
from brittle import doctor
from brittle.data import array_points
from brittle.scores import Score


def subject(network: nn.Module, scores: list[Score], x: torch.Tensor | None = None) -> doctor.Subject:
    x = inputs(16) if x is None else x
    points = array_points(x, None)
    batch = next(iter(points.batches(doctor.LOOKED_AT)))
    return doctor.Subject(brittle.Classifier(network), batch, None, scores, 0, 64, points)
