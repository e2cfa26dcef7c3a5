"""Folders of images: names, classes, and files that are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers.data_files import LABELS, LEVELS, encode, encoded_folder, from_split_folder, only, refused, write_folder

from brittle.data import open_points


def test_folder_ids_are_relative_and_names_are_paths(tmp_path: Path) -> None:
    from_split_folder(tmp_path, LEVELS, LABELS)
    by_split = only(open_points(tmp_path / "images", split="test"))
    direct = only(open_points(tmp_path / "images" / "test"))
    assert by_split.ids == direct.ids
    assert by_split.ids[:3] == ("ant/000.png", "ant/001.png", "bee/002.png")
    assert by_split.names == tuple(str(tmp_path / "images" / "test" / one) for one in by_split.ids)


def test_other_files_are_counted_not_read(tmp_path: Path) -> None:
    write_folder(tmp_path, [encode(one) for one in LEVELS], LABELS)
    for name in ("notes.txt", ".hidden.png", "Thumbs.db"):
        (tmp_path / "ant" / name).write_bytes(b"x")
    (tmp_path / "bee" / "deeper").mkdir()
    (tmp_path / "bee" / "deeper" / "x.PNG").write_bytes(encode(LEVELS[0]))
    points = open_points(tmp_path)
    assert points.provenance["other_files"] == 3
    assert "bee/deeper/x.PNG" in only(points).ids


def test_a_folder_without_images(tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    (tmp_path / "ant" / "notes.txt").write_text("x", encoding="utf-8")
    refused("empty_dataset", "1 other files", open_points, tmp_path)


def test_splits_are_not_taken_for_classes(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_folder(tmp_path / split, [encode(one) for one in LEVELS], LABELS)
    refused("split", "test, train", open_points, tmp_path)
    refused("split", "test, train", open_points, tmp_path, split="val")


@pytest.mark.parametrize(
    "name", [b'"><img src=x onerror=alert(1)>.png', b"caf\xe9.png", b"two\nlines.png", "é.png".encode()]
)
def test_names_of_any_kind(name: bytes, tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    (tmp_path / "ant" / os.fsdecode(name)).write_bytes(encode(LEVELS[0]))
    batch = only(open_points(tmp_path))
    assert batch.names is not None
    assert batch.ids == ("ant/" + name.decode(errors="backslashreplace"),)
    assert all(one.encode("utf-8") for one in (*batch.ids, *batch.names))


def test_a_file_that_went_away(tmp_path: Path) -> None:
    points = encoded_folder(tmp_path, [encode(one) for one in LEVELS])
    (tmp_path / "bee" / "002.png").unlink()
    refused("dataset", "bee/002.png cannot be opened", lambda: list(points.batches(2)))
