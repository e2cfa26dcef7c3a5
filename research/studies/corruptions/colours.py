"""Corruptions of each number by itself."""

from __future__ import annotations

import numpy as np

from brittle.extensions.image_noise import Draw, Image


def speckle_noise(image: Image, deviation: float, draw: Draw) -> Image:
    """Add normal noise in proportion to the level."""
    return image * (1 + draw.normal(0, deviation, image.shape))


def saturate(image: Image, strength: tuple[float, float], draw: Draw) -> Image:
    """Saturation `s` becomes `factor s + added`, at most 1; hue and value stay, and grey pixels stay grey."""
    factor, added = strength
    value = image.max(axis=2, keepdims=True)
    below = value - image
    saturation = np.divide(below.max(axis=2, keepdims=True), value, out=np.zeros_like(value), where=value > 0)
    target = np.minimum(factor * saturation + added, 1)
    return value - below * np.divide(target, saturation, out=np.ones_like(target), where=saturation > 0)
