"""Folders of IDX files, the format of MNIST."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from brittle.data.arrays import array_chunks, check_labels
from brittle.data.files import files_digest, path_text
from brittle.data.listed import InputChunk, ListedPoints, RowIds
from brittle.data.options import ReadingOptions
from brittle.errors import DataError
from brittle.model.bounds import BoundsLike

IMAGES, LABELS = "-images-idx3-ubyte", "-labels-idx1-ubyte"
"""What follows the prefix in the names of the files; `.gz` may follow."""

USUAL_SPLIT = "t10k"
ALIASES = {"test": USUAL_SPLIT}
"""MNIST calls its test split t10k."""

_HEADER = 16
"""Bytes before the pixels of a file with three axes."""

_MOST_GZIP = 1032
"""Deflate shrinks by no more than this factor."""


def is_idx_folder(path: Path) -> bool:
    """Whether `path` is a folder with an IDX image file."""
    return path.is_dir() and bool(_prefixes(path))


def read_idx(path: Path, options: ReadingOptions) -> ListedPoints:
    """Points in `PREFIX-images-idx3-ubyte[.gz]`, `[N, 1, H, W]`, and `PREFIX-labels-idx1-ubyte[.gz]`.

    The split is the prefix, the end of one after a hyphen, or `test` for `t10k`; by default `t10k` or the only prefix.

    Raises:
        DataError: there is no such split, or a file's header does not fit its length.
    """
    prefix = _prefix(path, options.split)
    files = [one for ending in (IMAGES, LABELS) for one in _files(path, prefix, ending)]
    shape, read = _images(files[0], options.bounds)
    if 0 in shape[1:]:
        raise DataError("corrupt", f"{path_text(files[0])} declares images of {shape[1]} x {shape[2]} pixels")
    labels = check_labels(_read(files[1], 1), path_text(files[1]), shape[0]) if len(files) > 1 else None
    count = len(range(shape[0])[: options.limit])
    provenance: dict[str, Any] = {
        "format": "idx",
        "path": path_text(path),
        "split": prefix,
        "sha256": files_digest(path, files),
        "points": count,
        "limit": options.limit,
        "files": [path_text(one.name) for one in files],
    }
    return ListedPoints(
        ids=RowIds(count),
        read=partial(read, stop=count),
        bounds=options.bounds,
        provenance=provenance,
        labels=None if labels is None else labels[:count],
    )


def _images(path: Path, bounds: BoundsLike) -> tuple[tuple[int, ...], Callable[..., Iterator[InputChunk]]]:
    """Shape of the images in a file, and what reads those of some rows: from the disk, unless they are compressed."""
    if path.suffix == ".gz":
        pixels = torch.from_numpy(_read(path, 3)).unsqueeze(1)
        return tuple(pixels[:, 0].shape), partial(_from_memory, pixels, bounds)
    try:
        with path.open("rb") as file:
            shape = _shape(path, file.read(_HEADER), 3)
    except OSError as error:
        raise DataError("corrupt", f"{path_text(path)} cannot be read: {error}") from error
    _check_length(path, shape, path.stat().st_size - _HEADER)
    return shape, partial(_from_disk, path, shape[1:], bounds)


def _from_memory(pixels: torch.Tensor, bounds: BoundsLike, size: int, start: int, stop: int) -> Iterator[InputChunk]:
    return array_chunks(pixels[:stop], size, start, bounds)


def _from_disk(
    path: Path, sides: tuple[int, ...], bounds: BoundsLike, size: int, start: int, stop: int
) -> Iterator[InputChunk]:
    area = math.prod(sides)
    for first in range(start, stop, size):
        wanted = min(size, stop - first) * area
        levels = np.fromfile(path, np.uint8, wanted, offset=_HEADER + first * area)
        rows = torch.from_numpy(levels[: len(levels) // area * area].reshape(-1, 1, *sides))
        yield from array_chunks(rows, size, 0, bounds)


def _check_length(path: Path, shape: Sequence[int], found: int) -> None:
    count = math.prod(shape)
    if found != count:
        sizes = " x ".join(map(str, shape))
        size = "more" if found > count else str(found) if found > 0 else "fewer"
        raise DataError("corrupt", f"{path_text(path)} declares {sizes} = {count} bytes and holds {size}; get it again")


def _prefixes(path: Path) -> list[str]:
    names = (one.name.removesuffix(".gz") for one in path.iterdir() if one.is_file())
    return sorted({name.removesuffix(IMAGES) for name in names if name.endswith(IMAGES)})


def _prefix(path: Path, split: str | None) -> str:
    prefixes = _prefixes(path)
    if split is None:
        found = [USUAL_SPLIT] if USUAL_SPLIT in prefixes else prefixes
    else:
        found = [one for one in prefixes if one in (split, ALIASES.get(split)) or one.endswith(f"-{split}")]
    if len(found) == 1:
        return found[0]
    asked = "no split was named" if split is None else f"{len(found)} of them are a split {split!r}"
    raise DataError("split", f"{path_text(path)} holds {', '.join(prefixes)}; {asked}: name one with --split (split=)")


def _files(path: Path, prefix: str, ending: str) -> list[Path]:
    """The file with this prefix and ending, uncompressed if there is a choice; none if there is none."""
    return [one for one in (path / f"{prefix}{ending}", path / f"{prefix}{ending}.gz") if one.is_file()][:1]


def _read(path: Path, axes: int) -> np.ndarray:
    """The whole numbers 0..255 in an IDX file with this many axes."""
    compressed = path.suffix == ".gz"
    try:
        with gzip.open(path) if compressed else path.open("rb") as file:
            shape = _shape(path, file.read(4 + 4 * axes), axes)
            count, most = int(np.prod(shape, dtype=object)), path.stat().st_size * (_MOST_GZIP if compressed else 1)
            content = file.read(count + 1) if count <= most else b""
    except (OSError, EOFError, zlib.error) as error:
        raise DataError("corrupt", f"{path_text(path)} cannot be read: {error}") from error
    if len(content) != count:
        found = "more" if len(content) > count else f"{len(content)}" if content else "fewer"
        sizes = " x ".join(map(str, shape))
        raise DataError(
            "corrupt", f"{path_text(path)} declares {sizes} = {count} bytes and holds {found}; get it again"
        )
    return np.frombuffer(bytearray(content), dtype=np.uint8).reshape(shape)


def _shape(path: Path, header: bytes, axes: int) -> tuple[int, ...]:
    expected = bytes([0, 0, 8, axes])
    if len(header) < 4 + 4 * axes or header[:4] != expected:
        raise DataError(
            "corrupt",
            f"{path_text(path)} begins with {header[:4].hex() or 'nothing'}; an IDX file of bytes with {axes} axes "
            f"begins with {expected.hex()} and {axes} sizes",
        )
    return struct.unpack(f">{axes}I", header[4:])
