"""Blurs by a lens out of focus, by glass, by motion, by zooming in."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy import ndimage

from brittle.extensions.image_noise import Draw, Image
from studies.corruptions.shapes import scale


def defocus_blur(image: Image, strength: tuple[float, float], draw: Draw) -> Image:
    """Return the mean over a disc whose edge is smooth; `strength`: its radius, and the deviation of the smoothing."""
    radius, deviation = strength
    across = np.arange(-8, 9)
    disc = (np.hypot(*np.meshgrid(across, across)) <= radius).astype(np.float64)
    smooth = ndimage.gaussian_filter(disc / disc.sum(), deviation, radius=1)
    return ndimage.correlate(image, smooth[..., None], mode="mirror")


def glass_blur(image: Image, strength: tuple[float, int, int], draw: Draw) -> Image:
    """Pixels change places; `strength`: the deviation of a blur before and after, the longest way, how often.

    As in the published files, a pixel in colour takes its neighbour's colour, which stays there, too, while every other
    grey one changes places with it and is blurred along its column only.
    """
    deviation, reach, rounds = strength
    height, width, channels = image.shape
    deviations = (deviation, 0 if channels == 1 else deviation, 0)
    places = np.arange(height * width).reshape(height, width).tolist()
    moves_by_turn = draw.integers(-reach, reach, (rounds, height, width, 2)).tolist()
    moves = (draw.random((rounds, height, width)) < (0.5 if channels == 1 else 1)).tolist()
    for turn, row, column in product(range(rounds), range(height - reach, reach, -1), range(width - reach, reach, -1)):
        if moves[turn][row - 1][column - 1]:
            down, across = moves_by_turn[turn][row - 1][column - 1]
            here, target = places[row][column], places[row + down][column + across]
            places[row][column] = target
            if channels == 1:
                places[row + down][column + across] = here
    moved = ndimage.gaussian_filter(image, deviations, mode="nearest").reshape(-1, channels)[np.array(places)]
    return ndimage.gaussian_filter(moved, deviations, mode="nearest")


def motion_blur(image: Image, strength: tuple[int, float], draw: Draw) -> Image:
    """Up to 45 degrees from a row."""
    return smear(image, *strength, draw.uniform(-45, 45))


def smear(image: Image, radius: int, deviation: float, degrees: float) -> Image:
    """Average `2 radius + 1` pixels to one side by half a bell; those beyond the edge repeat it."""
    steps, angle = np.arange(2 * radius + 1), np.deg2rad(degrees)
    weights = np.exp(-((steps / deviation) ** 2) / 2)
    rows, columns = (np.arange(side) for side in image.shape[:2])
    changed = np.zeros_like(image)
    for step, weight in zip(steps, weights / weights.sum(), strict=True):
        down, across = np.ceil(step * np.array([np.sin(angle), np.cos(angle)]) - 0.5).astype(int)
        shifted = np.ix_((rows + down).clip(0, rows[-1]), (columns + across).clip(0, columns[-1]))
        changed += weight * image[shifted]
    return changed


def zoom_blur(image: Image, end: float, draw: Draw) -> Image:
    """Return the mean of the image and of its enlargements by 1, 1.01, ... `end`."""
    factors = np.arange(1, end + 0.005, 0.01)
    copies = [scale(image, factor, draw) for factor in factors]
    return (image + sum(copies)) / (len(copies) + 1)
