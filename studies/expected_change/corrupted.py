"""Corrupted copies of images, in some severities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studies.corruptions import STRENGTHS, corrupt, generator_for

SEVERITIES = (1, 3, 5)
"""The least, the middle and the strongest."""

TRANSLATE = "translate"
"""A kind of the study's own: so many pixels to a drawn side as the severity says; what comes in is black."""


def kinds(channels: int) -> list[str]:
    """The kinds for images of so many channels: those of `studies/corruptions.py`, and `translate`."""
    return [name for name in STRENGTHS if channels > 1 or name != "saturate"] + [TRANSLATE]


def translate(image: NDArray[np.uint8], pixels: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    """An image `[H, W, C]` moved up, down, left or right."""
    axis, way = int(generator.integers(2)), int(generator.choice([-1, 1]))
    moved = np.roll(image, way * pixels, axis=axis)
    emptied = np.moveaxis(moved, axis, 0)  # a view
    emptied[:pixels] = 0 if way > 0 else emptied[:pixels]
    emptied[-pixels:] = 0 if way < 0 else emptied[-pixels:]
    return moved


def copies(x: Tensor, seed: int) -> Iterator[tuple[str, int, Tensor]]:
    """Kind, severity and the corrupted copies of images `[B, C, H, W]` with pixels in [0, 1]."""
    levels = (255 * x).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    for kind in kinds(x.shape[1]):
        for severity in SEVERITIES:
            images = []
            for row, one in enumerate(levels):
                draw = generator_for(seed, kind, severity, str(row))
                how = translate(one, severity, draw) if kind == TRANSLATE else corrupt(one, kind, severity, draw)
                images.append(how.reshape(one.shape))
            yield kind, severity, torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
