"""Flips by plain counting, in blocks of as many copies as the usual estimate draws; with no code of the library."""

from __future__ import annotations

import torch
from torch import Tensor, nn

COPIES = 100
"""Noisy copies of a point that the usual estimate draws."""


@torch.no_grad()
def flips_by_block(network: nn.Module, points: Tensor, sigma: float, blocks: int, seed: int) -> Tensor:
    """How many of `COPIES` noisy copies of each point lose its class, in each of so many blocks, `[B, blocks]`, int64.

    Each point has a generator of its own, so its counts depend on no other point.
    """
    flips = torch.zeros(len(points), blocks, dtype=torch.int64)
    for row, point in enumerate(points):
        generator = torch.Generator().manual_seed(seed * 1_000_003 + row)
        predicted = network(point[None]).argmax(1)
        for block in range(blocks):
            noise = torch.randn(COPIES, *point.shape, generator=generator)
            flips[row, block] = (network(point + sigma * noise).argmax(1) != predicted).sum()
    return flips
