"""Images mirrored and shifted at random."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

SHIFT = 4
"""Pixels by which an image is shifted at most, in each direction; what comes in is black."""


def augment(x: Tensor) -> Tensor:
    """Each image of `[B, C, H, W]` mirrored left to right in half of the cases, and shifted.

    Source: He et al. (CVPR 2016), section 4.2.
    """
    count, channels, height, width = x.shape
    mirrored = torch.rand(count, device=x.device) < 0.5
    x = torch.where(mirrored[:, None, None, None], x.flip(3), x)
    down, across = torch.randint(2 * SHIFT + 1, (2, count, 1), device=x.device)
    rows = down + torch.arange(height, device=x.device)
    columns = across + torch.arange(width, device=x.device)
    image = torch.arange(count, device=x.device)[:, None, None, None]
    channel = torch.arange(channels, device=x.device)[:, None, None]
    return pad(x, (SHIFT,) * 4)[image, channel, rows[:, None, :, None], columns[:, None, None, :]]
