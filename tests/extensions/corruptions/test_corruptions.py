"""Published corruptions: the images and ids of a kind and a severity, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from brittle.data import open_points
from brittle.errors import DataError

COUNT, TIMES = 20, 5
LABELS = np.arange(COUNT) % 3
IMAGES = np.random.default_rng(0).integers(0, 256, (TIMES * COUNT, 8, 6, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a folder in the layout of CIFAR-10-C: two kinds, five severities of each."""
    np.save(tmp_path / "fog.npy", IMAGES)
    np.save(tmp_path / "snow.npy", 255 - IMAGES)
    np.save(tmp_path / "labels.npy", np.tile(LABELS, TIMES))
    (tmp_path / "._fog.npy").write_bytes(b"")  # macOS leaves such files
    return tmp_path


def refused_as(folder: Path, split: str | None = "fog:1") -> str:
    with pytest.raises(DataError) as caught:
        open_points(folder, split=split)
    return caught.value.code


@pytest.mark.parametrize("severity", range(1, TIMES + 1))
def test_a_severity_has_its_images_under_the_clean_ids(folder: Path, severity: int) -> None:
    clean = IMAGES[:COUNT]
    np.savez(folder.parent / "clean.npz", images=clean, labels=LABELS)
    clean_points = open_points(folder.parent / "clean.npz", layout="nhwc", scale_uint8=True)
    points = open_points(folder, split=f"snow:{severity}")
    assert (points.provenance["split"], points.provenance["files"]) == (f"snow:{severity}", ["snow.npy", "labels.npy"])
    (batch,), (pair,) = points.batches(COUNT), clean_points.batches(COUNT)
    assert (batch.ids, batch.labels) == (pair.ids, pair.labels)
    part = 255 - IMAGES[(severity - 1) * COUNT : severity * COUNT]
    assert torch.equal((batch.inputs * 255).round(), torch.from_numpy(part).permute(0, 3, 1, 2).float())


def test_values_between_0_and_1_are_taken_as_they_are(folder: Path) -> None:
    np.save(folder / "fog.npy", (IMAGES / 255).astype(np.float32))
    (batch,) = open_points(folder, split="fog:5").batches(COUNT)
    assert np.array_equal((batch.inputs * 255).round().permute(0, 2, 3, 1).numpy(), IMAGES[-COUNT:])


def test_a_folder_for_each_kind(tmp_path: Path) -> None:
    for kind, images in (("identity", IMAGES[:COUNT]), ("fog", IMAGES[COUNT : 2 * COUNT])):
        (tmp_path / kind).mkdir()
        for name, array in (("test_images", images[..., :1]), ("test_labels", LABELS), ("train_images", images[:0])):
            np.save(tmp_path / kind / f"{name}.npy", array)
    (clean,), (fog,) = (open_points(tmp_path, split=kind).batches(COUNT) for kind in ("identity", "fog"))
    assert (clean.ids, clean.labels) == (fog.ids, fog.labels) == (tuple(map(str, range(COUNT))), tuple(LABELS))
    assert fog.inputs.shape == (COUNT, 1, 8, 6)
    assert np.array_equal((fog.inputs[:, 0] * 255).round().numpy(), IMAGES[COUNT : 2 * COUNT, ..., 0])
    for split in (None, "rain", "fog:1"):
        assert refused_as(tmp_path, split) == "split"


@pytest.mark.parametrize("place", ["0.png", "cat/0.png"])
def test_arrays_beside_images_stay_other_files(folder: Path, place: str) -> None:
    (folder / place).parent.mkdir(exist_ok=True)
    Image.new("L", (4, 4)).save(folder / place)
    assert open_points(folder).provenance["format"] in ("folder", "images")


@pytest.mark.parametrize("split", [None, "fog", "fog:0", "fog:6", "fog:", "rain:1", "labels:1"])
def test_a_kind_and_a_severity_have_to_be_named(folder: Path, split: str | None) -> None:
    assert refused_as(folder, split) == "split"


@pytest.mark.parametrize(
    ("images", "labels", "code"),
    [
        (IMAGES, LABELS, "shape"),  # those of one severity alone
        (IMAGES[:-1], np.tile(LABELS, TIMES)[:-1], "shape"),  # 99 are no multiple of five
        (IMAGES[:, 0], np.tile(LABELS, TIMES), "shape"),  # three axes
        (IMAGES.transpose(0, 3, 1, 2), np.tile(LABELS, TIMES), "shape"),  # channels first
        (IMAGES, np.repeat(LABELS, TIMES), "labels"),  # the severities of each image follow each other
        (IMAGES.astype(np.int64), np.tile(LABELS, TIMES), "dtype"),
    ],
)
def test_files_of_another_layout_are_refused(folder: Path, images: np.ndarray, labels: np.ndarray, code: str) -> None:
    np.save(folder / "fog.npy", images)
    np.save(folder / "labels.npy", labels)
    assert refused_as(folder) == code
