"""Subjects for the doctor, and the codes of its findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from helpers.problems import inputs
from torch import Tensor, nn

import brittle
from brittle import doctor
from brittle.data import array_points
from brittle.scores import Moments, Score

COUNT = 64
SCORES: list[Score] = [Moments(0.2, draws=4)]


def subject_of(model: Callable[[Tensor], Tensor], rows: int = COUNT, count: int = COUNT) -> doctor.Subject:
    return examined(model, x=inputs(count), rows=rows)


def codes(subject: doctor.Subject) -> dict[str, str]:
    """Return the code of every check that did not end well, by name."""
    with subject.classifier.evaluating():
        return {check.name: check.code for check in doctor.run_all(subject) if check.code is not None}


class Recurrent(nn.Module):
    """A recurrent network over the rows of the images; the axes of batch and time are those of PyTorch's default."""

    def __init__(self, cell: Callable[..., nn.Module], **options: bool) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.cell, self.head = cell(6, 16, **options), nn.Linear(16, 4)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return 3 * self.head(self.cell(x[:, 0])[0][:, -1])


def examined(
    network: Callable[[Tensor], Tensor],
    scores: list[Score] = SCORES,
    x: Tensor | None = None,
    y: Tensor | None = None,
    rows: int = COUNT,
    **declared: Any,
) -> doctor.Subject:
    """Return the doctor's subject for a network on 16 points, or on `x`; inputs beyond [0, 1] need `bounds`."""
    points = array_points(inputs(16) if x is None else x, y, bounds=declared.get("bounds", (0.0, 1.0)))
    batch = next(iter(points.batches(doctor.GUARD_ROWS)))
    return doctor.Subject(brittle.Classifier(network, **declared), batch, points.labels, scores, 0, rows, points)
