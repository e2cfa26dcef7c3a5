"""Pictures that are corrupted, and what is measured on them."""

from __future__ import annotations

import numpy as np
from PIL import Image

from brittle.cli.digits import load_digits


def smooth_images(count: int, side: int, channels: int) -> np.ndarray:
    """Images of soft blobs with some texture, `[N, H, W, C]`, uint8."""
    generator = np.random.default_rng(side)
    coarse = generator.integers(0, 256, (count, 4, 4, channels), dtype=np.uint8)
    resized = [
        Image.fromarray(plane).resize((side, side), Image.Resampling.BICUBIC)
        for image in coarse
        for plane in image.transpose(2, 0, 1)
    ]
    planes = np.stack([np.asarray(picture) for picture in resized]).reshape(count, channels, side, side)
    texture = generator.integers(-20, 21, planes.shape)
    return (planes + texture).clip(0, 255).astype(np.uint8).transpose(0, 2, 3, 1)


def digits(count: int = 500) -> np.ndarray:
    """scikit-learn's digits, `[N, 8, 8]`, uint8."""
    return np.rint(255 * load_digits()[2][:count, 0].numpy()).astype(np.uint8)


FAMILIES = {
    "colour": smooth_images(12, 32, 3),
    "grey": smooth_images(40, 28, 1),
    "tiny colour": smooth_images(12, 8, 3),
    "large": smooth_images(3, 96, 3),
    "digits": digits(),
    "wide": smooth_images(4, 32, 3)[:, :20],
    "black": np.zeros((2, 8, 8, 3), np.uint8),
    "white": np.full((2, 8, 8), 255, np.uint8),
    "one pixel": np.full((2, 1, 1), 90, np.uint8),
}
