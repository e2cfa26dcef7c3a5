"""Images corrupted in five severities, as CIFAR-10-C and MNIST-C were made: all their kinds but frost.

D. Hendrycks, T. Dietterich, Benchmarking neural network robustness to common corruptions and perturbations, 2019,
https://arxiv.org/abs/1903.12261 (strengths: https://github.com/hendrycks/robustness, make_cifar_c.py); N. Mu,
J. Gilmer, MNIST-C: a robustness benchmark for computer vision, 2019, https://arxiv.org/abs/1906.02337 (strengths:
https://github.com/google-research/mnist-c, corruptions.py). Frost is absent, as it lays photographs over an image.
Stripes, lines and edges have one strength in MNIST-C, which is the fifth here; below it they are blended with the clean
image. Levels are rounded where the published files were cut off, and the draws are others. Lengths are in pixels of
images of side 32, in colour, or 28, grey.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.extensions.image_noise import KINDS, WHITE, Draw
from studies.corruptions.blurs import defocus_blur, glass_blur, motion_blur, zoom_blur
from studies.corruptions.colours import saturate, speckle_noise
from studies.corruptions.marks import canny_edges, dotted_line, stripe, zigzag
from studies.corruptions.shapes import elastic_transform, rotate, scale, shear, translate
from studies.corruptions.weather import fog, snow, spatter

OWN = {
    apply.__name__: apply
    for apply in (
        defocus_blur, glass_blur, motion_blur, zoom_blur, saturate, speckle_noise, canny_edges, dotted_line, stripe,
        zigzag, elastic_transform, rotate, scale, shear, translate, fog, snow, spatter,
    )
}  # fmt: skip
"""Functions by kind from an image `[H, W, C]`, black (0) to white (1), a strength and a generator to a copy that is not
yet clipped; the other kinds are the library's."""

SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Shares of the corrupted image, where MNIST-C has one strength."""

COLOUR: dict[str, tuple[Any, ...]] = {
    "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),  # standard deviation
    "shot_noise": (500, 250, 100, 75, 50),  # photons of a white pixel
    "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),  # share of the numbers that become black or white, half each
    "speckle_noise": (0.06, 0.1, 0.12, 0.16, 0.2),
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "zoom_blur": (1.06, 1.11, 1.16, 1.21, 1.26),
    "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1.0),  # standard deviation in pixels
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95), (0.1, 0.2, 1, 0.5, 10, 4, 0.9), (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85), (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),  # added to the value
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),  # factor of the distance from the mean
    "elastic_transform": ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),  # share of the pixels of a side that is kept
    "jpeg_compression": (80, 65, 58, 50, 40),  # quality
    "spatter": (
        (0.62, 0.1, 0.7, 0.7, 0.5, "water"), (0.65, 0.1, 0.8, 0.7, 0.5, "water"), (0.65, 0.3, 1, 0.69, 0.5, "water"),
        (0.65, 0.1, 0.7, 0.69, 0.6, "mud"), (0.65, 0.1, 0.5, 0.68, 0.6, "mud"),
    ),
    "saturate": ((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2)),
}  # fmt: skip
"""The kinds of CIFAR-10-C, by name, with a strength for each of the severities 1 to 5."""

GREY: dict[str, tuple[Any, ...]] = {
    "shot_noise": (60, 25, 12, 5, 3),
    "impulse_noise": (0.03, 0.06, 0.09, 0.17, 0.27),
    "glass_blur": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "motion_blur": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "shear": (0.2, 0.4, 0.6, 0.8, 1.0),
    "scale": (0.9, 0.8, 0.7, 0.6, 0.5),
    "rotate": (0.2, 0.4, 0.6, 0.8, 1.0),
    "brightness": (0.1, 0.2, 0.3, 0.4, 0.5),
    "translate": (1, 2, 3, 4, 5),
    "stripe": SHARES,
    "fog": ((1.5, 2), (2.0, 2), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4)),
    "spatter": (
        (0.65, 0.3, 4, 0.69, 0.6, "mud"), (0.65, 0.3, 3, 0.68, 0.6, "mud"), (0.65, 0.3, 2, 0.68, 0.5, "mud"),
        (0.65, 0.3, 1, 0.65, 1.5, "mud"), (0.67, 0.4, 1, 0.65, 1.5, "mud"),
    ),
    "dotted_line": SHARES,
    "zigzag": SHARES,
    "canny_edges": SHARES,
}  # fmt: skip
"""The kinds of MNIST-C."""


def strengths(channels: int) -> dict[str, tuple[Any, ...]]:
    """Return the kinds of corruption for images of so many channels, and their strengths."""
    return GREY if channels == 1 else COLOUR


def corrupt(image: NDArray[np.uint8], kind: str, severity: int, draw: Draw) -> NDArray[np.uint8]:
    """Return a corrupted copy of an image `[H, W, C]` of levels."""
    strength = strengths(image.shape[2])[kind][severity - 1]
    if kind in OWN:
        changed = WHITE * OWN[kind](image / WHITE, strength, draw)
    else:
        changed = KINDS[kind].apply(image.astype(np.float64), strength, draw)
    return np.rint(changed).clip(0, WHITE).astype(np.uint8)


def corrupt_all(x: Tensor, kind: str, severity: int, seed: int) -> Tensor:
    """Corrupted copies of images `[B, C, H, W]` with pixels in [0, 1]; the draws of each are keyed by its row."""
    levels = (WHITE * x).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    copies = [
        corrupt(picture, kind, severity, generator_for(seed, kind, severity, str(row)))
        for row, picture in enumerate(levels)
    ]
    return torch.from_numpy(np.stack(copies)).permute(0, 3, 1, 2).float() / WHITE


def generator_for(seed: int, kind: str, severity: int, point: str) -> Draw:
    """Return the generator of one copy, keyed by (seed, kind, severity, point id)."""
    key = f"{seed}\n{kind}\n{severity}\n{point}".encode("utf-8", "surrogatepass")
    return np.random.default_rng(int.from_bytes(hashlib.blake2b(key, digest_size=16).digest(), "big"))
