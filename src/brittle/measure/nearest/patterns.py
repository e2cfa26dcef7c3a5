"""Fixed patterns of signs, fine and coarse, that searches set out along."""

from __future__ import annotations

import torch
from torch import Tensor


def coarse_signs(shape: torch.Size, cells: int, generator: torch.Generator) -> Tensor:
    """Random signs, alike within each of at most `cells` cells along the last two axes of a `shape`: `[n]`, 1 or -1."""
    signs = torch.randint(0, 2, [*shape[:-2], *(min(cells, size) for size in shape[-2:])], generator=generator)
    for axis, size in enumerate(shape[-2:], start=max(0, len(shape) - 2)):
        cell = torch.arange(size) * signs.shape[axis] // size
        signs = signs.index_select(axis, cell)
    return 2.0 * signs.flatten().float() - 1.0
