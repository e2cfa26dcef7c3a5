"""Images corrupted in five severities, with the strengths by which CIFAR-10-C was made, and a rotation of MNIST-C.

D. Hendrycks, T. Dietterich, Benchmarking neural network robustness to common corruptions and perturbations, 2019,
https://arxiv.org/abs/1903.12261 (strengths: https://github.com/hendrycks/robustness, make_cifar_c.py); N. Mu,
J. Gilmer, MNIST-C: a robustness benchmark for computer vision, 2019, https://arxiv.org/abs/1906.02337. The kinds are
those that need no more than NumPy, SciPy and Pillow; levels are rounded where the published files were cut off, and the
draws are others.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from brittle.noise.corruption import KINDS

STRENGTHS: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),  # standard deviation, as a share of the value range
    "shot_noise": (500, 250, 100, 75, 50),  # photons of a white pixel
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),  # share of the numbers that become black or white, half each
    "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1.0),  # standard deviation in pixels of an image of side 32
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),  # added to the value, as a share of the value range
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),  # factor of the distance from the mean
    "saturate": ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)),  # factor, and what is added
    "jpeg_compression": (80, 65, 58, 50, 40),  # quality
    "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),  # share of the pixels of a side that is kept
    "rotate": (0.2, 0.4, 0.6, 0.8, 1.0),  # angle in radians, to a drawn side; what comes into the image is black
}
"""All kinds, by name, with a strength for each of the severities 1 to 5."""


def corrupt(image: NDArray[np.uint8], kind: str, severity: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    """A corrupted copy of an image `[H, W, C]` of levels."""
    strength = STRENGTHS[kind][severity - 1]
    match kind:
        case "rotate":
            changed = _rotate(image, strength, generator)
        case "saturate":
            changed = _saturate(image, *strength)
        case _:
            changed = KINDS[kind].apply(image.astype(np.float64), strength, generator)
    return np.rint(changed).clip(0, 255).astype(np.uint8)


def generator_for(seed: int, kind: str, severity: int, point: str) -> np.random.Generator:
    """The generator of one copy, keyed by (seed, kind, severity, point id)."""
    key = f"{seed}\n{kind}\n{severity}\n{point}".encode("utf-8", "surrogatepass")
    return np.random.default_rng(int.from_bytes(hashlib.blake2b(key, digest_size=16).digest(), "big"))


def _rotate(image: NDArray[np.uint8], angle: float, generator: np.random.Generator) -> NDArray[np.uint8]:
    picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    degrees = math.degrees(angle) * generator.choice((-1, 1))
    return np.asarray(picture.rotate(degrees, Image.Resampling.BILINEAR)).reshape(image.shape)


def _saturate(image: NDArray[np.uint8], factor: float, added: float) -> NDArray[np.float64]:
    """Saturation `s` becomes `factor s + added`, at most 1; hue and value stay, and grey pixels stay grey."""
    value = image.max(axis=2, keepdims=True).astype(np.float64)
    below = value - image
    saturation = below.max(axis=2, keepdims=True) / np.maximum(value, 1)
    wanted = np.minimum(factor * saturation + added, 1)
    return value - below * np.divide(wanted, saturation, out=np.ones_like(wanted), where=saturation > 0)
