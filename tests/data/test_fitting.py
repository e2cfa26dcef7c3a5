"""Images of several sizes are brought to one size; resizing, cutting and conversion are checked against separate
code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import inputs, only, refused, save
from PIL import Image
from torch import nn

import brittle
from brittle.data import Points, open_points
from brittle.estimate import Status
from brittle.scores import LogitMargin

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # sentences are tested here

RNG = np.random.default_rng(0)


def picture(height: int, width: int, channels: int = 1) -> np.ndarray:
    """Levels, `[H, W]` or `[H, W, 3]`."""
    return RNG.integers(0, 256, (height, width, channels), dtype=np.uint8).squeeze(-1 if channels == 1 else ())


def png(levels: np.ndarray) -> bytes:
    return save(Image.fromarray(levels), "PNG")


def flat(path: Path, files: list[bytes], **options: Any) -> Points:
    (path / "flat").mkdir(exist_ok=True)
    for row, content in enumerate(files):
        (path / "flat" / f"{row}.png").write_bytes(content)
    return open_points(path / "flat", **options)


def triangles(size: int, new_size: int) -> np.ndarray:
    """Weights `[new_size, size]` of a triangle around the middle of each new pixel, two pixels wide at least."""
    scale = size / new_size
    reach = max(scale, 1.0)
    middles = (np.arange(new_size) + 0.5) * scale
    weights = np.maximum(0, 1 - np.abs(np.arange(size) + 0.5 - middles[:, None]) / reach)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("new_size", [(4, 6), (16, 3)])
def test_resizing_is_bilinear_with_antialiasing(new_size: tuple[int, int], tmp_path: Path) -> None:
    pictures = [picture(8, 12), picture(5, 7), picture(20, 3)]
    images = inputs(flat(tmp_path, [png(levels) for levels in pictures], resize=new_size)).numpy()
    assert images.shape == (3, 1, *new_size)
    for image, levels in zip(images, pictures, strict=True):
        rows, columns = triangles(levels.shape[0], new_size[0]), triangles(levels.shape[1], new_size[1])
        assert np.abs(255 * image[0] - rows @ levels @ columns.T).max() <= 1.01  # rounded to a level after each axis


@pytest.mark.parametrize(
    ("size", "crop", "row", "column"),
    [((5, 8), (2, 4), 2, 2), ((3, 7), (2, 4), 0, 2)],
)  # fmt: skip
def test_the_middle_is_kept(
    size: tuple[int, int], crop: tuple[int, int], row: int, column: int, tmp_path: Path
) -> None:
    levels = picture(*size)
    images = 255 * inputs(flat(tmp_path, [png(levels), png(picture(30, 40))], center_crop=crop)).numpy()
    assert np.array_equal(images[0, 0].round(), levels[row : row + crop[0], column : column + crop[1]])


@pytest.mark.parametrize(("size", "expected"), [((10, 20), (5, 10)), ((20, 10), (10, 5)), ((7, 10), (5, 7))])
def test_the_shorter_side_keeps_the_shape(size: tuple[int, int], expected: tuple[int, int], tmp_path: Path) -> None:
    assert only(flat(tmp_path, [png(picture(*size))], resize=[5])).inputs.shape[2:] == expected


def test_grey_and_colour_become_one(tmp_path: Path) -> None:
    grey, colour = picture(6, 8), picture(6, 8, 3)
    images = 255 * inputs(flat(tmp_path, [png(grey), png(colour)], mode="RGB")).numpy()
    assert np.array_equal(images.round(), np.stack([np.stack([grey] * 3), colour.transpose(2, 0, 1)]))
    images = 255 * inputs(flat(tmp_path, [png(colour), png(grey)], mode="L")).numpy()
    luma = colour @ np.array([0.299, 0.587, 0.114])  # ITU-R 601-2
    assert np.abs(images[0, 0] - luma).max() <= 1
    assert np.array_equal(images[1, 0].round(), grey)


def test_mixed_sizes_name_options_and_small_images_cost_a_row(tmp_path: Path) -> None:
    files = [png(picture(6, 8)), png(picture(6, 9))]
    match = r"1.png has 9 x 6 pixels, .*0.png 8 x 6; bring .* or use --resize H W or --center-crop H W"
    refused("shape", match, only, flat(tmp_path, files))
    match = r"0.png: 8 x 6 pixels, from which the middle 7 x 7 cannot be cut"
    refused("corrupt", match, flat, tmp_path, files, center_crop=(7, 7))
    batch = only(flat(tmp_path, files, center_crop=(6, 9)))
    assert batch.status == (Status.DECODE_ERROR, Status.OK)
    match = r"0.png: 5 x 5 pixels once resized, from which"
    refused("corrupt", match, flat, tmp_path, files, resize=(5, 5), center_crop=(6, 5))


def test_an_image_resized_too_large_costs_its_row_alone(tmp_path: Path) -> None:
    files = [png(picture(4, 4)), png(picture(1, 4000))]
    batch = only(flat(tmp_path, files, resize=[8000], center_crop=(4, 4)))
    assert batch.status == (Status.OK, Status.IMAGE_TOO_LARGE)
    assert "32000000 x 8000 pixels once resized" in (batch.detail[1] or "")


@pytest.mark.parametrize(
    ("options", "code", "match"),
    [
        ({"resize": (0, 4)}, "parameter", r"resize takes height and width or the shorter side .* found \(0, 4\)"),
        ({"resize": (4.5,)}, "parameter", "from 1"),
        ({"resize": (10**6, 4)}, "parameter", "to 8,192"),
        ({"center_crop": (4,)}, "parameter", "takes height and width in pixels"),
        ({"mode": "CMYK"}, "parameter", "must be one of RGB, L; found 'CMYK'"),
    ],
)
def test_impossible_sizes_are_refused(options: dict[str, Any], code: str, match: str, tmp_path: Path) -> None:
    refused(code, match, flat, tmp_path, [png(picture(4, 4))], **options)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"P5\n2 2\n65535\n" + bytes(8), Status.IMAGE_MODE),
        (b"P5\n90000 90000\n255\n", Status.IMAGE_TOO_LARGE),
        (b"P5\n2 2\n255\n\x00", Status.DECODE_ERROR),
        (b"P6\n2 -2\n255\n" + bytes(12), Status.DECODE_ERROR),
    ],
)
def test_odd_netpbm_files_cost_their_row_alone(content: bytes, status: Status, tmp_path: Path) -> None:
    batch = only(flat(tmp_path, [png(picture(2, 2)), content]))
    assert batch.status == (Status.OK, status)


def test_a_run_records_how_its_images_were_fitted(tmp_path: Path) -> None:
    files = [png(picture(6 + row, 8)) for row in range(4)]
    torch.manual_seed(0)
    classifier = brittle.Classifier(nn.Sequential(nn.Flatten(), nn.Linear(48, 3)), bounds=(0, 1))

    def run(**options: Any) -> brittle.Table:
        points = flat(tmp_path, files, **options)
        return brittle.score(classifier, points, [LogitMargin()], out=tmp_path / "run", resume=True)

    fit: dict[str, Any] = {"resize": (6, 6), "center_crop": (4, 4), "mode": "RGB"}
    assert {"resize": [6, 6], "center_crop": [4, 4], "mode": "RGB"}.items() <= run(**fit).record.data.reading.items()
    passes = classifier.passes
    run(**fit)
    assert classifier.passes == passes
    refused("other_run", r"data.reading.resize \[6, 6\] there, \[6, 7\] now", run, **fit | {"resize": (6, 7)})
    brittle.read_table(tmp_path / "run").report(tmp_path / "report.html")
