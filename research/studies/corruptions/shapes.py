"""Images that are turned, moved, made smaller, or bent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import ndimage

from brittle.extensions.image_noise import KINDS, Draw, Image


def scale(image: Image, factor: float, draw: Draw) -> Image:
    """Larger or smaller about the centre; what comes in is black."""
    down, across = (_between(side, factor) for side in image.shape[:2])
    return np.tensordot(down, across @ image, 1)


def _between(side: int, factor: float) -> Image:
    """Return the weights by which a row of so many pixels becomes longer: linear ones between neighbours."""
    pixels, centre = np.arange(side), (side - 1) / 2
    places = centre + (pixels - centre) / factor
    return np.maximum(0, 1 - np.abs(places[:, None] - pixels))


def shear(image: Image, radians: float, draw: Draw) -> Image:
    """Return the vertical leans to a drawn side by this angle, and keeps its length."""
    angle = radians * draw.choice((-1, 1))
    matrix = np.array([[math.cos(angle), 0, 0], [-math.sin(angle), 1, 0], [0, 0, 1]])
    centre = (np.array(image.shape) - 1) / 2
    offset: Any = centre - matrix @ centre
    return ndimage.affine_transform(image, matrix, offset, order=1, mode="constant")


def rotate(image: Image, radians: float, draw: Draw) -> Image:
    """Turn the image to a drawn side."""
    return KINDS["rotation"].apply(image, math.degrees(radians) * draw.choice((-1, 1)), draw)


def translate(image: Image, pixels: int, draw: Draw) -> Image:
    """Move the image along both sides, in drawn directions."""
    return KINDS["shift"].apply(image, pixels * draw.choice((-1.0, 1.0), 2), draw)


def elastic_transform(image: Image, strength: tuple[float, float, float], draw: Draw) -> Image:
    """Three points move, and then each pixel; beyond the edge the image is mirrored.

    `strength`, as shares of the side: how far a pixel moves, the deviation by which its way is smoothed, and how far a
    point moves along each side.
    """
    height, width, channels = image.shape
    size, smoothing, jitter = min(height, width) * np.array(strength)
    third = min(height, width) // 3
    points = np.array([height // 2, width // 2]) + third * np.array([[1, 1], [-1, 1], [-1, -1]])
    moved = points + draw.uniform(-jitter, jitter, points.shape)
    back = np.linalg.solve(np.column_stack([moved, np.ones(3)]), points)  # rows `(down, right, 1)` to where they were
    steps = draw.uniform(-1, 1, (2, height, width))
    smooth = ndimage.gaussian_filter(steps, (0, smoothing, smoothing), mode="reflect", truncate=3)
    places = np.indices((height, width)) + size * smooth
    down, across = np.tensordot(back.T, np.stack([*places, np.ones((height, width))]), 1)
    bent = [
        ndimage.map_coordinates(image[..., channel], [down, across], order=1, mode="mirror")
        for channel in range(channels)
    ]
    return np.stack(bent, axis=2)
