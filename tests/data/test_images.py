"""Images: unreadable ones cost their row alone, and no file is trusted."""

from __future__ import annotations

import io
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import (
    BAD_IMAGES,
    COUNT,
    HEIGHT,
    LEVELS,
    WIDTH,
    encode,
    encoded_folder,
    only,
    refused,
    save,
)
from PIL import Image, ImageFile

from brittle.data import open_points
from brittle.data.images import FORMATS as IMAGE_FORMATS
from brittle.data.images import THUMBNAIL_SIDE, thumbnails
from brittle.estimate import Status

bad_images = pytest.mark.parametrize("name", BAD_IMAGES)


@bad_images
def test_a_bad_image_leaves_the_others_alone(name: str, tmp_path: Path) -> None:
    content, status, pattern = BAD_IMAGES[name]
    good = [encode(levels) for levels in LEVELS]
    batch = only(encoded_folder(tmp_path / "bad", [content, *good[1:3], content, *good[4:]]))
    good_batch = only(encoded_folder(tmp_path / "good", good))
    good_rows = [row for row in range(COUNT) if row not in (0, 3)]
    assert torch.equal(batch.inputs[good_rows], good_batch.inputs[good_rows])
    for field in ("ids", "labels", "status", "detail", "images"):
        value, expected = getattr(batch, field), getattr(good_batch, field)
        assert value is expected or [value[row] for row in good_rows] == [expected[row] for row in good_rows]
    for row in (0, 3):
        detail = batch.detail[row] or ""
        assert batch.status[row] == status
        assert detail.startswith(f"row {row} (")
        assert f"{row:03}.png" in detail
        assert re.search(pattern, detail)
        assert not batch.inputs[row].any()
        assert batch.images is not None
        assert batch.images[row] is None


def test_reading_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_start(*args: Any, **options: Any) -> None:
        raise AssertionError(f"a program was started: {args}")

    monkeypatch.setattr(subprocess, "Popen", refuse_start)
    monkeypatch.setattr(os, "system", refuse_start)
    files = [encode(LEVELS[0]), *(content for content, _, _ in BAD_IMAGES.values())]
    for row, content in enumerate(files):
        (tmp_path / "ant").mkdir(exist_ok=True)
        (tmp_path / "ant" / f"{row:03}.eps").write_bytes(content)
    assert [status for status in only(open_points(tmp_path)).status if status.has_value] == [Status.OK]


def test_a_large_image_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    load = ImageFile.ImageFile.load

    def record_load(image: ImageFile.ImageFile) -> Any:
        sizes.append(image.size)
        return load(image)

    monkeypatch.setattr(ImageFile.ImageFile, "load", record_load)
    assert encoded_folder(tmp_path, [BAD_IMAGES["huge"][0], encode(LEVELS[0])]).provenance["points"] == 2
    assert set(sizes) == {(WIDTH, HEIGHT)}


@pytest.mark.parametrize("kind", IMAGE_FORMATS)
def test_formats_without_loss_keep_their_pixels(kind: str, tmp_path: Path) -> None:
    colour = np.random.default_rng(0).integers(0, 256, (3, HEIGHT, WIDTH), dtype=np.uint8)
    options = {"lossless": True} if kind == "WEBP" else {}
    images = only(encoded_folder(tmp_path / "images", [encode(colour, kind, **options)])).inputs
    if kind == "JPEG":  # the only one with loss
        assert images.shape == (1, 3, HEIGHT, WIDTH)
    else:
        assert torch.equal(images[0], torch.from_numpy(colour).float() / 255)


@pytest.mark.parametrize(("first_mode", "channels"), [("L", 1), ("1", 1), ("LA", 1), ("P", 3), ("RGB", 3), ("RGBA", 3)])
def test_the_first_image_decides_the_mode(first_mode: str, channels: int, tmp_path: Path) -> None:
    colour = Image.fromarray(np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8))
    modes = [first_mode, "L", "1", "LA", "P", "RGB", "RGBA"]
    batch = only(encoded_folder(tmp_path / "images", [save(colour.convert(mode), "PNG") for mode in modes]))
    assert set(batch.status) == {Status.OK}
    assert batch.inputs.shape == (7, channels, HEIGHT, WIDTH)
    rgb = batch.inputs[5]
    expected = np.asarray(colour.convert("L" if channels == 1 else "RGB"))
    assert torch.equal((255 * rgb).round().to(torch.uint8), torch.tensor(np.atleast_3d(expected)).permute(2, 0, 1))
    assert torch.equal(batch.inputs[6], rgb)


def test_images_of_two_sizes_are_refused(tmp_path: Path) -> None:
    points = encoded_folder(tmp_path / "images", [encode(LEVELS[0]), encode(LEVELS[1]), encode(LEVELS[2, :, :3])])
    batches = points.batches(2)
    assert len(next(batches)) == 2
    refused("shape", "8 x 3 pixels", next, batches)


def test_thumbnails_are_small_and_only_of_images() -> None:
    large = thumbnails(torch.rand(2, 3, 100, 300), (0.0, 1.0))
    assert large is not None
    assert [Image.open(io.BytesIO(png)).size for png in large] == [(THUMBNAIL_SIDE, THUMBNAIL_SIDE // 3)] * 2
    assert thumbnails(torch.rand(2, 2, 8, 8), (0.0, 1.0)) is None
    assert thumbnails(torch.rand(2, 8), (0.0, 1.0)) is None


@pytest.mark.parametrize("number", [1, 3, 6, 65535])
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_pixels_ignore_the_exif_orientation(kind: str, number: int, tmp_path: Path) -> None:
    """Pixels are read as stored, whatever the EXIF orientation, as torchvision does."""
    exif = Image.Exif()
    exif[0x0112] = number
    content = encode(np.random.default_rng(5).integers(0, 256, (3, 5, 8), dtype=np.uint8), kind, exif=exif)
    with Image.open(io.BytesIO(content)) as image:
        raw = np.asarray(image).transpose(2, 0, 1)
    batch = only(encoded_folder(tmp_path, [content] * COUNT))
    assert np.array_equal((255 * batch.inputs[0]).round().numpy(), raw)
