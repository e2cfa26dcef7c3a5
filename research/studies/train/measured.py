"""Accuracy of a trained network, with and without an attack."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from studies.train.ways.ascent import ascend

ROWS = 500
"""Images that go through the network at a time."""

STEPS = 10


def accuracy(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """Share of the images `[N, C, H, W]` whose class `[N]` the network finds."""
    with torch.no_grad():
        is_correct = [network(rows).argmax(dim=1) == of for rows, of in zip(x.split(ROWS), y.split(ROWS), strict=True)]
    return float(torch.cat(is_correct).double().mean())


def attacked_accuracy(network: nn.Module, x: Tensor, y: Tensor, epsilon: float) -> float:
    """Share that is right on an image and at what PGD-10 on the cross-entropy finds in the Linf ball around it."""
    correct = 0
    for rows, of in zip(x.split(ROWS), y.split(ROWS), strict=True):
        generator = torch.Generator(x.device).manual_seed(0)
        start = rows + epsilon * (2 * torch.rand(rows.shape, generator=generator, device=x.device) - 1)
        moved = ascend(network, rows, start, epsilon, STEPS, lambda z, of=of: cross_entropy(z, of, reduction="sum"))
        with torch.no_grad():
            correct += int(((network(rows).argmax(dim=1) == of) & (network(moved).argmax(dim=1) == of)).sum())
    return correct / len(x)
