"""Folders of IDX files, the format of MNIST."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

from brittle.data.arrays import array_chunks
from brittle.data.files import choose_split, files_digest, path_text
from brittle.data.labels import check_labels
from brittle.data.points import InputChunk, ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import DataError
from brittle.model.bounds import BoundsLike

IMAGES, LABELS = "-images-idx3-ubyte", "-labels-idx1-ubyte"
"""What follows the prefix in the names of the files; `.gz` may follow."""

TEST = "t10k"
"""MNIST calls its test split so; it is read where no split is named."""

_MOST_GZIP = 1032
"""Deflate shrinks by no more than this factor."""


def is_idx_folder(path: Path) -> bool:
    """Whether `path` is a folder with an IDX image file."""
    return path.is_dir() and bool(_prefixes(path))


def read_idx(path: Path, reading: Reading) -> ListedPoints:
    """Points in `PREFIX-images-idx3-ubyte[.gz]`, `[N, 1, H, W]`, and `PREFIX-labels-idx1-ubyte[.gz]`.

    The split is the prefix, the end of one after a hyphen, or `test` for `t10k`; by default `t10k` or the only prefix.
    """
    prefix = _prefix(path, reading.split)
    files = [one for ending in (IMAGES, LABELS) for one in _files(path, prefix, ending)]
    shape, pixels = _open(files[0], 3)
    if 0 in shape[1:]:
        raise DataError("corrupt", f"{path_text(files[0])} declares images of {shape[1]} x {shape[2]} pixels")
    labels = None
    if len(files) > 1:
        numbers = [np.empty(0, np.uint8), *_rows(*_open(files[1], 1), 1 << 16, 0)]
        labels = check_labels(np.concatenate(numbers), path_text(files[1]), shape[0])
    names = [path_text(one.name) for one in files]
    return reading.points(
        reading.record(path, files_digest(path, files), split=prefix, files=names),
        RowIds(shape[0]),
        partial(_chunks, shape, pixels, bounds=reading.bounds),
        labels=labels,
    )


def _prefixes(path: Path) -> list[str]:
    names = (one.name.removesuffix(".gz") for one in path.iterdir() if one.is_file())
    return sorted({name.removesuffix(IMAGES) for name in names if name.endswith(IMAGES)})


def _prefix(path: Path, split: str | None) -> str:
    prefixes = _prefixes(path)
    if split is None:
        return TEST if TEST in prefixes else choose_split(path, prefixes, None)
    meant = [one for one in prefixes if one == split or one.endswith(f"-{split}") or (split, one) == ("test", TEST)]
    return meant[0] if len(meant) == 1 else choose_split(path, prefixes, split)


def _files(path: Path, prefix: str, ending: str) -> list[Path]:
    """The file with this prefix and ending, uncompressed if there is a choice; none if there is none."""
    return [one for one in (path / f"{prefix}{ending}", path / f"{prefix}{ending}.gz") if one.is_file()][:1]


def _open(path: Path, axes: int) -> tuple[tuple[int, ...], np.ndarray | Path]:
    """The shape of the whole numbers 0..255 in an IDX file with this many axes, and they; or the file, where they are
    not compressed and stay on the disk."""
    where, start, packed = path_text(path), _start(axes), path.suffix == ".gz"
    content = b""
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            header = file.read(start)
            if len(header) < start or header[:4] != bytes([0, 0, 8, axes]):
                raise DataError(
                    "corrupt",
                    f"{where} begins with {header[:4].hex() or 'nothing'}; an IDX file of bytes with {axes} axes "
                    f"begins with {bytes([0, 0, 8, axes]).hex()} and {axes} sizes",
                )
            shape = struct.unpack(f">{axes}I", header[4:])
            count = math.prod(shape)
            if packed and count <= path.stat().st_size * _MOST_GZIP:
                content = file.read(count + 1)
        length = len(content) if packed else path.stat().st_size - start
    except (OSError, EOFError, zlib.error) as error:
        raise DataError("corrupt", f"{where} cannot be read: {error}") from error
    if length != count:
        sizes, found = " x ".join(map(str, shape)), "more" if length > count else length or "fewer"
        raise DataError("corrupt", f"{where} declares {sizes} = {count} bytes and holds {found}; get it again")
    return shape, np.frombuffer(bytearray(content), np.uint8).reshape(shape) if packed else path


def _start(axes: int) -> int:
    """Where the numbers begin: after a mark and the sizes."""
    return 4 + 4 * axes


def _rows(shape: tuple[int, ...], pixels: np.ndarray | Path, size: int, start: int) -> Iterator[np.ndarray]:
    """The rows from `start`, `size` at a time; fewer than `shape` says where the file was cut meanwhile."""
    area = math.prod(shape[1:])
    for first in range(start, shape[0], size):
        if isinstance(pixels, Path):
            wanted, offset = min(size, shape[0] - first) * area, _start(len(shape)) + first * area
            levels = np.fromfile(pixels, np.uint8, wanted, offset=offset)
            yield levels[: len(levels) // area * area].reshape(-1, *shape[1:])
        else:
            yield pixels[first : first + size]


def _chunks(
    shape: tuple[int, ...], pixels: np.ndarray | Path, size: int, start: int, bounds: BoundsLike
) -> Iterator[InputChunk]:
    for rows in _rows(shape, pixels, size, start):
        yield from array_chunks(torch.from_numpy(rows).unsqueeze(1), size, 0, bounds)
