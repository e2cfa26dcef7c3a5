"""Recognition of data formats, and files of none."""

from __future__ import annotations

import gzip
import io
import math
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.data_files import refused

from brittle import registry
from brittle.data import open_points
from brittle.data.formats import FORMATS
from brittle.errors import DataError


def test_a_format_can_be_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((3, 2)))
    assert open_points(tmp_path / "x.npz", format="npz").provenance == open_points(tmp_path / "x.npz").provenance
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    refused("unknown_format", r"expected a \.npz file .* \(format npz\)", open_points, tmp_path / "x.csv", format="npz")
    refused("usage", "no format is called 'cvs'", open_points, tmp_path / "x.csv", format="cvs")


def test_a_format_of_a_missing_extension_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PARTS, "format.gone", "vanished.format:GONE")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    refused("usage", "of the extension vanished", open_points, tmp_path / "x.csv", format="gone")


def test_a_missing_path_is_refused(tmp_path: Path) -> None:
    refused("no_such_path", "data.npz does not exist", open_points, tmp_path / "data.npz")


def test_an_unknown_format_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "data.pt").write_bytes(b"anything")
    with pytest.raises(DataError, match=r"data\.pt is none of the formats") as caught:
        open_points(tmp_path / "data.pt")
    assert all(f"{name}:" in str(caught.value) for name in FORMATS)


@pytest.mark.parametrize("name", ["state.json", "dataset_dict.json"])
def test_save_to_disk_folders_are_refused_with_advice(name: str, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / name).write_text("{}")
    refused("unknown_format", "to_parquet", open_points, tmp_path)


BYTES = 40_000_000
"""Size of each file when unpacked, from some 40 kB."""


def npz(shape: tuple[int, ...], kind: str, key: str = "x", declared: int = BYTES) -> Callable[[Path], Path]:
    """Return a writer of an archive with an array of zeros, and small inputs if the array holds something else."""

    def write(folder: Path) -> Path:
        sink = io.BytesIO()
        header = {"descr": kind, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(sink, header)
        inputs: dict[str, Any] = {} if key == "x" else {"x": np.zeros((4, 4), np.float32)}
        np.savez(folder / "x.npz", **inputs)
        with zipfile.ZipFile(folder / "x.npz", "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{key}.npy", sink.getvalue() + bytes(BYTES))
        return folder / "x.npz"

    return write


def idx(images: tuple[int, ...], labels: tuple[int, ...] | None = None, packed: int = 0) -> Callable[[Path], Path]:
    """Return a writer of IDX files that declare these sizes; the file with number `packed` holds zeros."""

    def write(folder: Path) -> Path:
        for place, shape in enumerate((images, labels)):
            if shape is not None:
                head = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
                content = bytes(BYTES) if place == packed else bytes(math.prod(shape))
                name = "t10k-labels-idx1-ubyte.gz" if place else "t10k-images-idx3-ubyte.gz"
                (folder / name).write_bytes(gzip.compress(head + content))
        return folder

    return write


@pytest.mark.parametrize(
    ("write", "code"),
    [
        (npz((BYTES // 64, 4), "<c16"), "dtype"),
        (npz((BYTES // 4,), "<f4"), "shape"),
        (npz((BYTES // 4, 0), "<f4"), "corrupt"),
        (npz((4, 4), "<f4"), "corrupt"),
        (npz((BYTES, 4), "<f4"), "corrupt"),
        (npz((BYTES // 4, 4), "|O"), "dtype"),
        (npz((4, BYTES // 4), "|u1", "y"), "labels"),
        (npz((BYTES,), "|u1", "y"), "shape"),
        (npz((BYTES,), "|u1", "ids"), "shape"),
        (npz((BYTES // 4,), "<U1", "feature_names"), "columns"),
        (idx((60_000, 28, 28)), "corrupt"),
        (idx((BYTES, 28, 28)), "corrupt"),
        (idx((4, 1, 1)), "corrupt"),
        (idx((BYTES, 0, 1)), "corrupt"),
        (idx((BYTES, 1, 1), (4,)), "shape"),
        (idx((4, 1, 1), (BYTES,), packed=1), "shape"),
    ],
    ids=range(16),
)
def test_a_header_is_checked_before_room_is_made(write: Callable[[Path], Path], code: str, tmp_path: Path) -> None:
    """A file of kilobytes that unpacks to 40 MB of unused bytes is refused within 4 MB."""
    path = write(tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            open_points(path)
        assert tracemalloc.get_traced_memory()[1] < BYTES / 10
    finally:
        tracemalloc.stop()
    assert caught.value.code == code
