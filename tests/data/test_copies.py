"""Corrupted copies of a data set: what `corrupt` makes of each point, written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.pictures import FAMILIES, smooth_images
from PIL import Image

from brittle.data import array_points, open_points
from brittle.data.corruptions import CORRUPTIONS, ROWS, corrupt, generator_for, write_copies
from brittle.errors import BrittleError, StorageError


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
        (np.zeros((2, 8, 8), np.float32), ["contrast"], [1], "shape (8, 8), which is no image"),
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
