"""Corruptions: laws that hold for every kind, published strengths, and copies that are scored like their originals.

All draws are keyed by fixed seeds, so a test that passes once fails only where NumPy changes its streams; the rates
below are for that case.
"""

from __future__ import annotations

import numpy as np
import pytest
from helpers.pictures import FAMILIES
from PIL import Image

from brittle.data.corruptions import CORRUPTIONS, SEVERITIES, choose, corrupt, generator_for
from brittle.errors import DataError

GREY = tuple(kind for kind, one in CORRUPTIONS.items() if kind != "saturate")


def kinds_of(images: np.ndarray) -> tuple[str, ...]:
    return tuple(CORRUPTIONS) if images.shape[3:] == (3,) else GREY


def copies_of(images: np.ndarray, kind: str, severity: int, seed: int = 0) -> np.ndarray:
    return np.stack(
        [corrupt(one, kind, severity, generator_for(seed, kind, severity, str(row))) for row, one in enumerate(images)]
    )


def change(images: np.ndarray, kind: str, severity: int) -> float:
    return float(np.abs(copies_of(images, kind, severity).astype(int) - images).mean())


CASES = [(family, kind) for family, images in FAMILIES.items() for kind in kinds_of(images)]


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_a_copy_is_an_image_like_the_original(family: str, kind: str) -> None:
    images = FAMILIES[family]
    before = images.copy()
    for severity in (1, 5):
        copies = copies_of(images, kind, severity)
        assert copies.dtype == np.uint8
        assert copies.shape == images.shape
        assert (copies == copies_of(images, kind, severity)).all()
    assert (images == before).all()


@pytest.mark.parametrize("family", ["colour", "grey", "digits"])
@pytest.mark.parametrize("kind", [kind for kind, one in CORRUPTIONS.items() if kind != "saturate"])
def test_severity_grows(family: str, kind: str) -> None:
    """The closest pair is impulse noise at 0.02 and 0.03 of about 31,000 numbers: false fails below 1e-5."""
    images = FAMILIES[family]
    changes = np.array([change(images, kind, severity) for severity in SEVERITIES])
    if (family, kind) == ("digits", "pixelate"):  # 7, 7, 6, 6 and 5 of 8 pixels: too coarse to grow
        assert 0 < changes[0] < changes[2:].min()
    else:
        assert changes[0] > 0
        assert (np.diff(changes) > 0).all(), changes


def test_strength_of_the_noises() -> None:
    """Half a million numbers: standard errors are about 0.1 % of the deviations, and 1.5 % is allowed."""
    flat = np.full((400, 400, 3), 128, np.uint8)
    draw = np.random.default_rng(0)
    for severity in SEVERITIES:
        _, sigma = choose("gaussian_noise", severity)
        assert corrupt(flat, "gaussian_noise", severity, draw).std() == pytest.approx(255 * sigma, rel=0.015)
        _, photons = choose("shot_noise", severity)
        shot = corrupt(flat, "shot_noise", severity, draw)
        assert shot.std() == pytest.approx(255 * (128 / 255 / photons) ** 0.5, rel=0.015)
        assert shot.mean() == pytest.approx(128, rel=0.01)
        _, share = choose("impulse_noise", severity)
        impulse = corrupt(flat, "impulse_noise", severity, draw)
        for level in (0, 255):  # 2,400 hits or more, standard error at most 2 %: five of them
            assert (impulse == level).mean() == pytest.approx(share / 2, rel=0.1)
        assert set(np.unique(impulse)) == {0, 128, 255}


def test_known_light() -> None:
    image = np.array([[[200, 100, 0], [0, 0, 0], [50, 50, 50], [250, 250, 125]]], np.uint8)
    found = corrupt(image, "brightness", 2, np.random.default_rng(0))
    assert found.tolist() == [[[226, 113, 0], [26, 26, 26], [76, 76, 76], [255, 255, 128]]]
    pair = np.array([[0, 200]], np.uint8)
    assert corrupt(pair, "contrast", 2, np.random.default_rng(0)).tolist() == [[50, 150]]


def test_saturate_against_pillow() -> None:
    """Hue, saturation and value by Pillow, which rounds each to a level; grey pixels, which have no hue, aside."""
    image = FAMILIES["colour"][0]
    hue, saturation, value = Image.fromarray(image).convert("HSV").split()
    for severity in SEVERITIES:
        _, (factor, added) = choose("saturate", severity)
        levels = np.rint((np.asarray(saturation) * factor + 255 * added).clip(0, 255)).astype(np.uint8)
        expected = np.asarray(Image.merge("HSV", (hue, Image.fromarray(levels), value)).convert("RGB")).astype(int)
        found = corrupt(image, "saturate", severity, np.random.default_rng(0))
        coloured = np.asarray(saturation) > 40
        assert coloured.mean() > 0.5
        assert np.abs(expected - found)[coloured].mean() < 3
    grey = np.full((2, 2, 3), 80, np.uint8)
    assert (corrupt(grey, "saturate", 5, np.random.default_rng(0)) == grey).all()


def test_blur_is_as_long_as_the_image_is_large() -> None:
    """A white line through the middle: its profile has the standard deviation of the blur."""
    for side, pixels in ((16, 1.0), (32, 1.0), (96, 3.0)):
        line = np.zeros((side, side), np.uint8)
        line[:, side // 2] = 255
        profile = corrupt(line, "gaussian_blur", 5, np.random.default_rng(0))[0].astype(float)
        spread = ((np.arange(side) - side // 2) ** 2 * profile).sum() / profile.sum()
        assert spread**0.5 == pytest.approx(pixels, rel=0.03)


def test_rotation_turns_by_its_angle() -> None:
    """The white half of a picture, seen through a disk, points where it was turned to, to either side."""
    half = np.zeros((32, 32), np.uint8)
    half[:16] = 255
    down, right = np.mgrid[-15.5:16, -15.5:16]
    disk = down**2 + right**2 < 14**2
    found = half
    for severity in SEVERITIES:
        turned = set()
        for point in range(20):
            found = corrupt(half, "rotate", severity, generator_for(0, "rotate", severity, str(point)))
            white = disk * found.astype(float)
            turned.add(round(float(np.arctan2((white * right).sum(), -(white * down).sum())), 2))
        _, angle = choose("rotate", severity)
        # 20 draws miss one side with probability 2e-6
        assert sorted(turned) == pytest.approx([-angle, angle], abs=0.02)
    assert found[0, 0] == found[-1, -1] == 0  # what comes in is black


@pytest.mark.parametrize(
    ("image", "code"),
    [
        (np.zeros((8, 8)), "dtype"),
        ([[0, 1]], "dtype"),
        (np.zeros(8, np.uint8), "shape"),
        (np.zeros((8, 8, 2), np.uint8), "shape"),
        (np.zeros((3, 8, 8), np.uint8), "shape"),
        (np.zeros((2, 8, 8, 3), np.uint8), "shape"),
        (np.zeros((0, 8), np.uint8), "shape"),
    ],
)
def test_what_is_no_image(image: np.ndarray, code: str) -> None:
    with pytest.raises(DataError) as caught:
        corrupt(image, "contrast", 1, np.random.default_rng(0))
    assert caught.value.code == code


def test_draws_are_keyed_by_all_that_names_a_copy() -> None:
    keys = [(0, "a", 1, "x"), (1, "a", 1, "x"), (0, "b", 1, "x"), (0, "a", 2, "x"), (0, "a", 1, "y")]
    draws = {generator_for(*key).integers(1 << 62) for key in keys}
    assert len(draws) == len(keys)
    assert generator_for(*keys[0]).integers(1 << 62) in draws
