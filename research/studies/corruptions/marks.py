"""Marks on grey images: stripes, lines, and edges in place of areas."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from brittle.extensions.image_noise import Draw, Image


def blended(mark: Callable[[Image, Draw], Image]) -> Callable[[Image, float, Draw], Image]:
    """Return the image and, by a share, its marked copy."""

    @wraps(mark)
    def apply(image: Image, share: float, draw: Draw) -> Image:
        return (1 - share) * image + share * mark(image, draw).clip(0, 1)

    return apply


@blended
def stripe(image: Image, draw: Draw) -> Image:
    """Return a quarter on the left and one on the right are inverted."""
    columns = np.arange(image.shape[1]) * 4 // image.shape[1]
    return np.where(np.isin(columns, (0, 3))[:, None], 1 - image, image)


@blended
def dotted_line(image: Image, draw: Draw) -> Image:
    """Return a line from side to side, two pixels on after two off."""
    height, width, _ = image.shape
    columns = np.arange(width)
    line = np.interp(columns, (0, width - 1), draw.integers(0, height - 1, 2))
    return image + _drawn(image, line, columns // 2 % 2 == 1)


@blended
def zigzag(image: Image, draw: Draw) -> Image:
    """Return a line with teeth, two pixels up and two down, of which each spans four."""
    height, width, _ = image.shape
    columns, start, end = np.arange(width), 2, width - 3
    height_at_start = draw.integers(0, height - 1)
    along = np.interp(columns, (start, end), (height_at_start, height_at_start + draw.integers(-5, 5)))
    teeth = 4 / np.pi * np.arcsin(np.sin(np.pi / 4 * (columns - start)))
    return image + _drawn(image, along + teeth, (columns >= start) & (columns < end))


def _drawn(image: Image, rows: Image, inside: NDArray[np.bool_]) -> Image:
    """Return a line through these rows of the columns, which fades over 2.3 pixels."""
    distance = np.abs(np.arange(image.shape[0])[:, None] - rows)
    light = 1 + np.log(1 - np.minimum(distance, 2.2) / 2.3)
    return (light.clip(0, 1) * inside)[..., None]


@blended
def canny_edges(image: Image, draw: Draw) -> Image:
    """White edges on black (J. Canny, 1986): deviation 1, thresholds 0.1 and 0.2 of Sobel's slopes."""
    smooth = ndimage.gaussian_filter(image[..., 0], 1, mode="nearest")
    slopes = np.stack([ndimage.sobel(smooth, axis) for axis in (0, 1)])
    size = np.hypot(*slopes)
    steps = slopes / np.maximum(np.abs(slopes).max(axis=0), 1e-12)
    beside = [
        ndimage.map_coordinates(size, np.indices(size.shape) + direction * steps, order=1) for direction in (-1, 1)
    ]
    ridge = size >= np.maximum(0.1, np.maximum(*beside) - 1e-9)  # both of two that are equal but for rounding
    ridge[[0, -1]] = ridge[:, [0, -1]] = False
    labelled: Any = ndimage.label(ridge, np.ones((3, 3)))
    parts = labelled[0]
    return np.isin(parts, parts[ridge & (size >= 0.2)])[..., None].astype(np.float64)
