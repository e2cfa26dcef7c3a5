"""Differences of images, at one magnification."""

from __future__ import annotations

import io

import numpy as np
import pytest
from helpers.tables import HOSTILE
from numpy.typing import NDArray
from PIL import Image

from brittle.report.chapters.worst_case.pictures import common_factor, largest_change, magnified, pixels


def png(values: NDArray[np.float64]) -> bytes:
    sink = io.BytesIO()
    Image.fromarray(np.rint(255.0 * values.clip(0.0, 1.0)).astype(np.uint8)).save(sink, format="PNG")
    return sink.getvalue()


@pytest.mark.parametrize("shape", [(8, 8), (32, 32, 3)])
@pytest.mark.parametrize("largest", [0.01, 0.1, 0.4])
def test_the_largest_change_is_found_from_what_is_stored_and_shown_magnified(
    shape: tuple[int, ...], largest: float
) -> None:
    """Images of 8 bits: the change is known to about a step of the images over the root of the number of pixels."""
    rng = np.random.default_rng(0)
    point, change = rng.uniform(0.45, 0.55, shape), rng.normal(size=shape)
    change *= largest / np.abs(change).max()
    stored = png(0.5 + change / (2.0 * largest))
    found = largest_change(png(point), png(point + change), stored)
    assert found == pytest.approx(largest, abs=4.0 / 255.0 / np.sqrt(change.size))
    shown = pixels(magnified(stored, largest, 2))
    assert shown is not None
    assert np.abs(shown - np.clip(0.5 + 2.0 * change, 0.0, 1.0)).max() < 0.5 / 255.0 + 2.0 * largest / 255.0 + 1e-9


def test_one_factor_serves_all() -> None:
    assert common_factor([0.02, 0.04, 0.3]) == 10
    assert common_factor([0.6]) == 1
    assert common_factor([0.0031]) == 100
    assert common_factor([0.0, 0.0]) == 1


def test_what_is_no_small_image_gives_none() -> None:
    good = png(np.full((4, 4), 0.5))
    huge = good[:16] + (1 << 20).to_bytes(4, "big") * 2 + good[24:]
    for bad in (None, b"", good[:30], huge, HOSTILE[0].encode(), good[:8] + HOSTILE[1].encode() * 9):
        assert pixels(bad) is None
        assert largest_change(good, bad, good) == 0.0
        assert magnified(bad, 0.1, 10) is None
    assert largest_change(good, png(np.full((5, 5), 0.5)), good) == 0.0
    assert magnified(good, 0.0, 10) is None
