"""The files of MNIST: damaged ones are named, splits are found."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from helpers.data_files import LABELS, LEVELS, damaged, idx_bytes, refused

from brittle.data import open_points


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
def test_a_damaged_idx_file(packed: bool, content: bytes, match: str, tmp_path: Path) -> None:
    name = "t10k-images-idx3-ubyte" + (".gz" if packed else "")
    (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    refused("corrupt", match, open_points, tmp_path)


@pytest.mark.parametrize("kind", range(4))
def test_a_damaged_gzip(kind: int, tmp_path: Path) -> None:
    content = gzip.compress(idx_bytes(np.random.default_rng(0).integers(0, 256, (9, 30, 30), dtype=np.uint8)))
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(damaged(content)[kind])
    refused("corrupt", "t10k-images-idx3-ubyte.gz", open_points, tmp_path)


def test_idx_splits(tmp_path: Path) -> None:
    for prefix, count in (("sprite", 2), ("letters-train", 3)):
        (tmp_path / f"{prefix}-images-idx3-ubyte").write_bytes(idx_bytes(LEVELS[:count, 0]))
    refused("split", "letters-train, sprite", open_points, tmp_path)
    assert len(open_points(tmp_path, split="train")) == 3
    assert len(open_points(tmp_path, split="sprite")) == 2
    (tmp_path / "letters-train-images-idx3-ubyte").unlink()
    assert open_points(tmp_path).provenance["split"] == "sprite"
    assert open_points(tmp_path).labels is None


def test_idx_labels_that_are_not_as_many(tmp_path: Path) -> None:
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx_bytes(np.arange(3)))
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(LEVELS[:, 0]))
    refused("shape", r"\(3,\) for 7 points", open_points, tmp_path)
