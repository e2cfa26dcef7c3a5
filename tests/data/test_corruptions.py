"""Corruptions: laws that hold for every kind, published strengths, and copies that are scored like their originals.

All draws are keyed by fixed seeds, so a test that passes once fails only where NumPy changes its streams; the rates
below are for that case.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.pictures import FAMILIES, smooth_images
from PIL import Image

from brittle.data import array_points, open_points
from brittle.data.corruptions import CORRUPTIONS, ROWS, SEVERITIES, choose, corrupt, generator_for, write_copies
from brittle.errors import BrittleError, DataError, StorageError

GREY = tuple(kind for kind, one in CORRUPTIONS.items() if kind != "saturate")


def kinds_of(images: np.ndarray) -> tuple[str, ...]:
    return tuple(CORRUPTIONS) if images.shape[3:] == (3,) else GREY


def copies_of(images: np.ndarray, kind: str, severity: int, seed: int = 0) -> np.ndarray:
    return np.stack(
        [corrupt(one, kind, severity, generator_for(seed, kind, severity, str(row))) for row, one in enumerate(images)]
    )


def change(images: np.ndarray, kind: str, severity: int) -> float:
    return float(np.abs(copies_of(images, kind, severity).astype(int) - images).mean())


SEVERAL = ("colour", "wide", "black", "white", "one pixel")
CASES = [(family, kind) for family in SEVERAL for kind in kinds_of(FAMILIES[family])]


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


@pytest.mark.parametrize("kind", GREY)
def test_severity_grows(kind: str) -> None:
    """The closest pair is impulse noise at 0.02 and 0.03 of about 37,000 numbers: false fails below 1e-5."""
    changes = np.array([change(FAMILIES["colour"], kind, severity) for severity in SEVERITIES])
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


def stored(images: np.ndarray, bounds: tuple[float, float] = (0.0, 1.0)) -> np.ndarray:
    """Images `[N, H, W, C]` as inputs `[N, C, H, W]`."""
    low, high = bounds
    return (low + (high - low) * images.transpose(0, 3, 1, 2).astype(np.float64) / 255).astype(np.float32)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (0.0, 255.0)])
def test_copies_are_what_corrupt_makes(tmp_path: Path, bounds: tuple[float, float]) -> None:
    images = FAMILIES["tiny colour"]
    ids = [f"a/{row}.png" for row in range(len(images))]
    points = array_points(stored(images, bounds), np.arange(12) % 3, ids, ("ant", "bee", "cow"), bounds=bounds)
    done = write_copies(points, tmp_path / "new" / "er", tuple(CORRUPTIONS), (2, 4), seed=7, bounds=bounds)
    assert (done.points, done.failed, len(done.paths)) == (12, 0, 2 * len(CORRUPTIONS))
    assert sorted(done.paths) == sorted((tmp_path / "new" / "er").iterdir())
    for kind in CORRUPTIONS:
        copy = open_points(tmp_path / "new" / "er" / f"{kind}-4.npz", bounds=bounds)
        assert (copy.labels, copy.class_names) == (points.labels, points.class_names)
        (batch,) = copy.batches(100)
        assert batch.ids == tuple(ids)
        expected = [corrupt(one, kind, 4, generator_for(7, kind, 4, own)) for one, own in zip(images, ids, strict=True)]
        assert np.array_equal(batch.inputs.numpy(), stored(np.stack(expected), bounds))
        assert batch.inputs.dtype == torch.float32


def test_a_copy_does_not_depend_on_the_other_points(tmp_path: Path) -> None:
    images = stored(smooth_images(ROWS + 5, 8, 1))
    ids = np.arange(len(images))
    kinds = ("gaussian_noise", "rotate", "jpeg_compression")
    write_copies(array_points(images, ids=ids), tmp_path / "all", kinds, [1])
    order = np.random.default_rng(1).permutation(len(images))[:40]
    write_copies(array_points(images[order], ids=ids[order]), tmp_path / "some", kinds, [1])
    for kind in kinds:
        everything, some = (np.load(tmp_path / part / f"{kind}-1.npz")["x"] for part in ("all", "some"))
        assert np.array_equal(everything[order], some)


def test_points_that_cannot_be_read_keep_their_place(tmp_path: Path) -> None:
    for row, image in enumerate(FAMILIES["colour"]):
        folder = tmp_path / "images" / ("ant" if row < 6 else "bee")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{row:02}.png")
    (tmp_path / "images" / "ant" / "03.png").write_bytes(b"no image")
    points = open_points(tmp_path / "images")
    done = write_copies(points, tmp_path, ["contrast", "contrast"], [1, 1])
    assert (len(done.paths), done.points, done.failed) == (1, 12, 1)
    copy = open_points(done.paths[0])
    (original,), (batch,) = points.batches(20), copy.batches(20)
    assert (batch.ids, batch.labels) == (original.ids, original.labels)
    assert copy.class_names == ("ant", "bee")
    lost = batch.inputs.flatten(1).isnan()
    assert lost.all(dim=1).tolist() == lost.any(dim=1).tolist() == [row == 3 for row in range(12)]
    with np.load(done.paths[0]) as arrays:
        assert arrays["names"].tolist() == list(original.names or ())
        record = json.loads(str(arrays["corruption"]))
    assert record["data"] == points.provenance
    assert (record["kind"], record["severity"], record["strength"], record["seed"]) == ("contrast", 1, 0.75, 0)


@pytest.mark.parametrize(
    ("x", "kinds", "severities", "sentence"),
    [
        (np.zeros((2, 64), np.float32), ["contrast"], [1], "shape (64,), which is no image"),
        (np.zeros((2, 2, 8, 8), np.float32), ["contrast"], [1], "shape (2, 8, 8), which is no image"),
        (np.full((2, 1, 8, 8), 2.0, np.float32), ["contrast"], [1], "value_range: values from 2 to 2, outside [0, 1]"),
        (np.zeros((2, 1, 8, 8), np.float32), ["contrast", "saturate"], [1], "shape"),
        (np.zeros((2, 1, 8, 8), np.float32), ["contrast"], [1, 0], "severity"),
        (np.zeros((2, 1, 8, 8), np.float32), ["contrast"], [], "at least one kind and one severity"),
    ],
)
def test_nothing_is_written_where_anything_is_refused(
    tmp_path: Path, x: np.ndarray, kinds: list[str], severities: list[int], sentence: str
) -> None:
    with pytest.raises(BrittleError) as caught:
        write_copies(array_points(x), tmp_path / "out", kinds, severities)
    assert sentence in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_copy_is_not_overwritten(tmp_path: Path) -> None:
    points = array_points(stored(FAMILIES["grey"]))
    (path,) = write_copies(points, tmp_path, ["rotate"], [2]).paths
    before = path.read_bytes()
    with pytest.raises(StorageError, match=r"rotate-2\.npz is there already; choose another folder or remove it"):
        write_copies(points, tmp_path, ["rotate"], [1, 2], seed=1)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(StorageError, match="cannot be written"):
        write_copies(points, path / "inside", ["rotate"], [1])
