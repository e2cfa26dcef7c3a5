"""Folders of images: names, classes, and files that are none."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from helpers.data_files import (
    LABELS,
    LEVELS,
    damaged,
    encode,
    encoded_folder,
    from_split_folder,
    idx_bytes,
    only,
    refused,
    write_folder,
)

from brittle.data import open_points


def test_folder_ids_are_relative_and_names_are_paths(tmp_path: Path) -> None:
    from_split_folder(tmp_path, LEVELS, LABELS)
    by_split = only(open_points(tmp_path / "images", split="test"))
    direct = only(open_points(tmp_path / "images" / "test"))
    assert by_split.ids == direct.ids
    assert by_split.ids[:3] == ("ant/000.png", "ant/001.png", "bee/002.png")
    assert by_split.names == tuple(str(tmp_path / "images" / "test" / id_) for id_ in by_split.ids)


def test_files_that_are_no_images_are_counted_not_read(tmp_path: Path) -> None:
    write_folder(tmp_path, [encode(levels) for levels in LEVELS], LABELS)
    for name in ("notes.txt", ".hidden.png", "Thumbs.db"):
        (tmp_path / "ant" / name).write_bytes(b"x")
    (tmp_path / "bee" / "deeper").mkdir()
    (tmp_path / "bee" / "deeper" / "x.PNG").write_bytes(encode(LEVELS[0]))
    points = open_points(tmp_path)
    assert points.provenance["other_files"] == 3
    assert "bee/deeper/x.PNG" in only(points).ids


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    (tmp_path / "ant" / "notes.txt").write_text("x", encoding="utf-8")
    refused("empty_dataset", "1 other files", open_points, tmp_path)


def test_splits_are_not_taken_for_classes(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_folder(tmp_path / split, [encode(levels) for levels in LEVELS], LABELS)
    refused("split", "test, train", open_points, tmp_path)
    refused("split", "test, train", open_points, tmp_path, split="val")


@pytest.mark.parametrize(
    "name", [b'"><img src=x onerror=alert(1)>.png', b"caf\xe9.png", b"two\nlines.png", "é.png".encode()]
)
def test_file_names_of_any_bytes_are_read(name: bytes, tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    (tmp_path / "ant" / os.fsdecode(name)).write_bytes(encode(LEVELS[0]))
    batch = only(open_points(tmp_path))
    assert batch.names is not None
    assert batch.ids == ("ant/" + name.decode(errors="backslashreplace"),)
    assert all(text.encode("utf-8") for text in (*batch.ids, *batch.names))


def test_a_vanished_file_is_named(tmp_path: Path) -> None:
    points = encoded_folder(tmp_path, [encode(levels) for levels in LEVELS])
    (tmp_path / "bee" / "002.png").unlink()
    refused("dataset", "bee/002.png cannot be opened", lambda: list(points.batches(2)))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("content", "match"),
    [
        (idx_bytes(LEVELS[:, 0])[:-1], "7 x 5 x 8 bytes"),
        (idx_bytes(LEVELS[:, 0]) + b"x", "7 x 5 x 8 bytes"),
        (idx_bytes(LEVELS[:, 0])[:9], "begins with 00000803"),
        (idx_bytes(np.array(LABELS)), "begins with 00000801; expected 00000803"),
        (b"", "begins with nothing"),
        (struct.pack(">4B3I", 0, 0, 8, 3, 2**32 - 1, 2**32 - 1, 2**32 - 1), "4294967295 bytes"),
        (struct.pack(">4B3I", 0, 0, 8, 3, 2, 0, 5), "2 x 0 x 5 bytes"),
    ],
)
def test_a_damaged_idx_file_is_named(packed: bool, content: bytes, match: str, tmp_path: Path) -> None:
    name = "t10k-images-idx3-ubyte" + (".gz" if packed else "")
    (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    refused("corrupt", match, open_points, tmp_path)


@pytest.mark.parametrize("kind", range(4))
def test_a_damaged_gzip_file_is_named(kind: int, tmp_path: Path) -> None:
    content = gzip.compress(idx_bytes(np.random.default_rng(0).integers(0, 256, (9, 30, 30), dtype=np.uint8)))
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(damaged(content)[kind])
    refused("corrupt", "t10k-images-idx3-ubyte.gz", open_points, tmp_path)


def test_idx_splits_are_told_apart(tmp_path: Path) -> None:
    for prefix, count in (("sprite", 2), ("letters-train", 3)):
        (tmp_path / f"{prefix}-images-idx3-ubyte").write_bytes(idx_bytes(LEVELS[:count, 0]))
    refused("split", "letters-train, sprite", open_points, tmp_path)
    assert len(open_points(tmp_path, split="train")) == 3
    assert len(open_points(tmp_path, split="sprite")) == 2
    (tmp_path / "letters-train-images-idx3-ubyte").unlink()
    assert open_points(tmp_path).provenance["split"] == "sprite"
    assert open_points(tmp_path).labels is None


def test_idx_labels_of_another_count_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(3)))
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(LEVELS[:, 0]))
    refused("shape", r"\(3,\) for 7 points", open_points, tmp_path)


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["10", "9", "1", "0", "2"], ["0", "1", "2", "9", "10"]),
        (["010", "9", "002"], ["002", "9", "010"]),
        (["10", "9", "9b"], ["10", "9", "9b"]),
        (["10", "-1", "9"], ["-1", "9", "10"]),
        (["10", "+1", "9"], ["+1", "10", "9"]),
    ],
)
def test_folders_named_by_whole_numbers_are_sorted_by_value(names: list[str], order: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.png").write_bytes(encode(LEVELS[0]))
    points = open_points(tmp_path)
    assert list(points.class_names or ()) == order
    assert [order.index(Path(id_).stem) for id_ in only(points).ids] == list(points.labels or ())
