"""Arrays in .npy files, and labels in another: those of memory; nothing is unpickled, and no header is believed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.data_files import LABELS, LEVELS, damaged, encode, inputs, only, refused
from helpers.problems import small_classifier

import brittle
from brittle.data import Points, open_points
from brittle.scores import LogitMargin

FLOATS = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 6)
Y = np.array([0, 1, 2, 1])


def npy(path: Path, x: Any, y: Any = None, **options: Any) -> Points:
    np.save(path / "x.npy", x)
    if y is not None:
        np.save(path / "y.npy", y)
        options = {"labels": path / "y.npy"} | options
    return open_points(path / "x.npy", **options)


def flat(path: Path, y: Any = None, **options: Any) -> Points:
    (path / "images").mkdir()
    for row, levels in enumerate(LEVELS):
        (path / "images" / f"{row:03}.png").write_bytes(encode(levels))
    if y is not None:
        np.save(path / "y.npy", y)
        options = {"labels": path / "y.npy"} | options
    return open_points(path / "images", **options)


@pytest.mark.parametrize(
    "x",
    [FLOATS, np.asfortranarray(FLOATS), FLOATS.astype(">f8"), FLOATS.reshape(4, 1, 2, 3)],
    ids=["C", "F", ">f8", "4"],
)
def test_the_array_is_the_inputs(x: np.ndarray, tmp_path: Path) -> None:
    points = npy(tmp_path, x, Y)
    assert np.array_equal(inputs(points).numpy(), x)
    assert points.labels == tuple(Y)
    assert only(points).ids == ("0", "1", "2", "3")


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("which", ["x", "y"])
def test_nothing_is_unpickled(which: str, tmp_path: Path) -> None:
    hostile = np.array([Canary(tmp_path / "canary")] * 4, dtype=object)
    arrays = {"x": FLOATS, "y": Y} | {which: hostile}
    refused("dtype", f"{which}.npy holds Python objects", npy, tmp_path, arrays["x"], arrays["y"])
    assert not (tmp_path / "canary").exists()


def header(shape: tuple[int, ...], kind: str = "<f4") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        *damaged(header((50, 20)) + bytes(4000))[::2],
        b"",
        header((10**9, 10**9)) + bytes(16),
        header((4, 3)) + bytes(47),
        header((4, 3)) + bytes(49),
        header((10**12, 3), "|V0"),
        b"\x93NUMPY\x03\x00" + bytes(100),
        b"\x93NUMPY\x01\x00v\x00" + b"(" * 118,
        b"\x80\x04K\x01.",
        b"PK\x03\x04" + bytes(50),
    ],
    ids=range(11),
)  # fmt: skip
def test_a_damaged_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    refused("corrupt", "x.npy is not a readable .npy file", open_points, tmp_path / "x.npy")


def test_labels_that_are_not_there_or_not_for_this(tmp_path: Path) -> None:
    refused(
        "no_such_path",
        "none.npy .--labels, labels=. does not exist",
        npy,
        tmp_path,
        FLOATS,
        labels=tmp_path / "none.npy",
    )
    np.savez(tmp_path / "data.npz", x=FLOATS)
    refused("parameter", "--labels", open_points, tmp_path / "data.npz", labels=tmp_path / "y.npy")
    refused("split", "leave out --split", npy, tmp_path, FLOATS, split="test")


def test_a_folder_without_classes_is_its_images(tmp_path: Path) -> None:
    points = flat(tmp_path, np.array(LABELS))
    (tmp_path / "images" / "notes.txt").write_text("x", encoding="utf-8")
    assert torch.equal(inputs(points), torch.from_numpy(LEVELS).float() / 255)
    assert points.labels == LABELS
    assert only(points).ids == tuple(f"{row:03}.png" for row in range(len(LEVELS)))
    again = open_points(tmp_path / "images", limit=3)
    assert (again.labels, len(again), again.provenance["other_files"]) == (None, 3, 1)
    assert (again.provenance["format"], points.class_names) == ("images", None)
    refused("split", "leave out --split", open_points, tmp_path / "images", split="test")


def test_a_run_knows_its_labels(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((8, 1, 6, 6), dtype=np.float32)
    options: dict[str, Any] = {"out": tmp_path / "run", "resume": True}
    first = brittle.score(small_classifier(), npy(tmp_path, x, np.arange(8) % 4), [LogitMargin()], **options)
    expected = brittle.score(small_classifier(), (x, np.arange(8) % 4), [LogitMargin()])
    assert first.scores.equals(expected.scores)
    other = npy(tmp_path, x, np.arange(8) % 3)
    refused("other_run", "data.labels_sha256", brittle.score, small_classifier(), other, [LogitMargin()], **options)
