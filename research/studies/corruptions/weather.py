"""Snow, fog, and drops of water and mud."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from brittle.extensions.image_noise import Draw, Image
from studies.corruptions.blurs import smear
from studies.corruptions.shapes import scale

GREY_OF_COLOUR = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in the luminance of ITU-R BT.601."""

WATER, MUD = np.array([175, 238, 238]) / 255, np.array([63, 42, 20]) / 255


def fog(image: Image, strength: tuple[float, float], draw: Draw) -> Image:
    """Return a cloud over the image; `strength`: how dense, and how smooth.

    On grey images it is a corner of a larger cloud.
    """
    dense, decay = strength
    height, width, channels = image.shape
    side = 256 if channels == 1 else 32
    brightest = image.max()
    return (image + dense * cloud(side, decay, draw)[:height, :width, None]) * brightest / (brightest + dense)


def cloud(side: int, decay: float, draw: Draw) -> Image:
    """Heights from 0 to 1 of a map without an edge, by squares and diamonds; its side is a power of 2.

    The middle of a square, and then of a diamond, is the mean of its corners and a draw, which shrinks by `decay`
    squared at each halving.
    """
    heights, step, spread = np.zeros((side, side)), side, 1.0
    while step > 1:
        half = step // 2
        corners, after = heights[::step, ::step], lambda part, axis: np.roll(part, -1, axis)
        of_two = corners + after(corners, 0), corners + after(corners, 1)
        middles = (of_two[0] + after(of_two[0], 1)) / 4 + draw.uniform(-spread, spread, corners.shape)
        heights[half::step, half::step] = middles
        for axis, places in enumerate((np.s_[half::step, ::step], np.s_[::step, half::step])):
            total = of_two[axis] + middles + np.roll(middles, 1, 1 - axis)
            heights[places] = total / 4 + draw.uniform(-spread, spread, corners.shape)
        step, spread = half, spread / decay**2
    return (heights - heights.min()) / np.ptp(heights)


def snow(image: Image, strength: tuple[float, float, float, float, int, float, float], draw: Draw) -> Image:
    """Flakes that fall, and a paler image.

    `strength`: mean and deviation of the flakes, their enlargement, their least level, radius and deviation of their
    fall, and the share of the image that does not turn pale.
    """
    mean, deviation, factor, threshold, radius, length, share = strength
    flakes = scale(draw.normal(mean, deviation, (*image.shape[:2], 1)), factor, draw)
    flakes = np.where(flakes < threshold, 0, flakes).clip(0, 1)
    flakes = smear(flakes, radius, length, draw.uniform(-135, -45))
    grey = (image @ GREY_OF_COLOUR)[..., None]
    return share * image + (1 - share) * np.maximum(image, 1.5 * grey + 0.5) + flakes + np.rot90(flakes, 2)


def spatter(image: Image, strength: tuple[float, float, float, float, float, str], draw: Draw) -> Image:
    """Add drops of water, which shine, or of mud, which is dark grey on grey images.

    `strength`: mean and deviation of a field, the deviation by which it is smoothed, its least level in a drop, the
    share of water, or the deviation by which mud is smoothed, and which of them it is.
    """
    mean, deviation, smoothing, threshold, of_drop, liquid = strength
    field = ndimage.gaussian_filter(draw.normal(mean, deviation, image.shape[:2]), smoothing, mode="nearest")
    drops = field > threshold
    if liquid == "water":
        return image + of_drop * _shine(field, drops)[..., None] * WATER
    cover = ndimage.gaussian_filter(drops.astype(np.float64), of_drop, mode="nearest")[..., None]
    cover = np.where(cover < 0.8, 0, cover)
    return image * (1 - cover) + MUD[: image.shape[2]] * cover


def _shine(field: Image, drops: NDArray[np.bool_]) -> Image:
    """How light the drops are, at most 1: by the distance from their edge, as if lit from above, on the left."""
    edge = drops > ndimage.binary_erosion(drops, border_value=1)
    if not edge.any():
        return np.zeros_like(field)
    distance: Any = ndimage.distance_transform_edt(~edge)
    levels = ndimage.uniform_filter(np.minimum(distance, 20), 3, mode="mirror").astype(int)
    counts = np.bincount(levels.ravel()).cumsum()
    even = (255 * (counts - counts[levels.min()]) / max(1, counts[-1] - counts[levels.min()]))[levels]
    lit = ndimage.correlate(even, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]), mode="mirror").clip(0, 255)
    shine = ndimage.uniform_filter(lit, 3, mode="mirror") * field * drops
    return shine / max(shine.max(), 1e-9)
