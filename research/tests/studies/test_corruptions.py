"""The corruptions of the studies: they grow with the severity, and a key decides each copy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from studies.corruptions import COLOUR, GREY, corrupt, corrupt_all, generator_for

Image = NDArray[np.uint8]

CASES = [*((kind, 3) for kind in COLOUR), *((kind, 1) for kind in GREY)]

FIXED = {
    "defocus_blur", "zoom_blur", "gaussian_blur", "brightness", "contrast", "pixelate", "jpeg_compression", "saturate",
    "scale", "stripe", "canny_edges",
}  # fmt: skip
"""Kinds that draw nothing."""

SMOOTH = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur", "elastic_transform", "pixelate")
"""Kinds that leave an image of one colour as it is."""


def pictures(channels: int) -> list[Image]:
    """Return a disc on a ground with waves, in six places; the ground of a grey image is black."""
    side = 28 if channels == 1 else 32
    down, across = np.mgrid[:side, :side]
    ground = np.array([0.0]) if channels == 1 else 0.5 + np.sin(down / 3 + across / 5)[..., None] * [0.3, 0.1, 0.2]
    tints = np.array([1.0]) if channels == 1 else np.array([0.9, 0.4, 0.1])
    places = [(11, 13), (14, 14), (16, 12), (12, 16), (15, 15), (10, 14)]
    discs = [np.clip(6 - np.hypot(down - row, across - column), 0, 1)[..., None] for row, column in places]
    return [np.rint(255 * (ground * (1 - disc) + tints * disc)).astype(np.uint8) for disc in discs]


def copy(image: Image, kind: str, severity: int, point: str = "a", seed: int = 0) -> Image:
    return corrupt(image, kind, severity, generator_for(seed, kind, severity, point))


def distance(kind: str, severity: int, channels: int) -> float:
    """Return the root mean square over the images, in levels."""
    squares = [
        (copy(image, kind, severity, str(row)).astype(float) - image) ** 2
        for row, image in enumerate(pictures(channels))
    ]
    return float(np.mean(squares) ** 0.5)


def test_the_kinds_are_those_of_the_papers() -> None:
    """19 without frost, and 15; each in five strengths."""
    assert (len(COLOUR), len(GREY)) == (18, 15)
    assert all(len(strengths) == 5 for strengths in (*COLOUR.values(), *GREY.values()))


@pytest.mark.parametrize(("kind", "channels"), CASES)
def test_the_strongest_is_farther_from_the_image_than_the_least(kind: str, channels: int) -> None:
    """The seed is fixed. But an elastic copy, as it gets worse, is moved less as a whole and bent more."""
    weakest, strongest = (distance(kind, severity, channels) for severity in (1, 5))
    assert weakest > 0
    assert strongest > 0
    assert kind == "elastic_transform" or strongest > weakest


@pytest.mark.parametrize(("kind", "channels"), CASES)
def test_a_key_decides_the_copy(kind: str, channels: int) -> None:
    """The seed is fixed; of the other keys some may draw the same side."""
    image = pictures(channels)[0]
    for severity in range(1, 6):
        corrupted = copy(image, kind, severity)
        assert (corrupted.shape, corrupted.dtype) == (image.shape, np.uint8)
        assert np.array_equal(corrupted, copy(image, kind, severity))
    for copies in (
        [copy(image, kind, 5, point) for point in "bcdefg"],
        [copy(image, kind, 5, seed=s) for s in range(6)],
    ):
        assert all(np.array_equal(copies[0], picture) for picture in copies) == (kind in FIXED)


@pytest.mark.parametrize(("kind", "channels"), [case for case in CASES if case[0] in SMOOTH])
def test_blurs_leave_one_colour(kind: str, channels: int) -> None:
    image = np.full((32, 32, channels), 70, dtype=np.uint8)
    assert all(np.array_equal(copy(image, kind, severity), image) for severity in range(1, 6))


def test_known_answers() -> None:
    """An inverted quarter on each side; a pixel that moves by five; half a side; the edge of a square."""
    image = pictures(1)[0]
    striped = copy(image, "stripe", 5)
    assert np.array_equal(striped[:, 7:21], image[:, 7:21])
    assert np.array_equal(striped[:, [*range(7), *range(21, 28)]], 255 - image[:, [*range(7), *range(21, 28)]])
    dot = np.zeros((28, 28, 1), dtype=np.uint8)
    dot[14, 14] = 200
    assert np.abs(np.argwhere(copy(dot, "translate", 5)[..., 0]) - 14).tolist() == [[5, 5]]
    square = np.zeros((28, 28, 1), dtype=np.uint8)
    square[4:24, 4:24] = 255
    assert np.count_nonzero(copy(square, "scale", 5)) == 100
    edges = copy(square, "canny_edges", 5)[..., 0]
    assert edges[5:23, 5:23].max() == edges[:3].max() == edges[:, 25:].max() == 0
    assert (edges[6:22, 3:5].max(axis=1) == 255).all()


def test_the_copies_of_a_batch_are_those_of_its_images() -> None:
    images = pictures(3)[:2]
    x = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2) / 255
    levels = (255 * corrupt_all(x, "snow", 3, 7).permute(0, 2, 3, 1)).round().numpy()
    assert np.array_equal(levels, [copy(image, "snow", 3, str(row), 7) for row, image in enumerate(images)])
