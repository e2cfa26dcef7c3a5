"""Measurements that several files share."""

from __future__ import annotations

import torch
from helpers.inputs import SIGMA

import brittle
from brittle.measure.forward import look
from brittle.noise import Gaussian, Stream

COUNT = 5
IDS = tuple(str(number) for number in range(COUNT))


def clean_of(classifier: brittle.Classifier, x: torch.Tensor):
    return look(classifier, x, IDS[: len(x)], seed=0)


def slow_jacobian(network: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.autograd.functional.jacobian(lambda row: network(row[None])[0], x).flatten(1)


def pairs_of(x: torch.Tensor, purpose: str, draws: int) -> torch.Tensor:
    """Return the noisy copies that a measurement of these points makes, `[B, draws, *shape]`."""
    half = Stream(Gaussian(SIGMA), x, IDS[: len(x)], 0, purpose).draw(draws // 2)
    signed = torch.stack((half, -half), dim=2).flatten(1, 2)
    return x[:, None] + signed
