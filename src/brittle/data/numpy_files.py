"""Points in `.npy` and `.npz` files, of which nothing is unpickled, and in the IDX files of MNIST."""

from __future__ import annotations

import gzip
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from brittle.data.arrays import check_inputs, feature_record, read_arrays, text_ids
from brittle.data.files import choose_split, file_digest, files_digest, path_text, refuse_split
from brittle.data.labels import answers_of
from brittle.data.points import ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import DataError

KEYS = {
    "inputs": ("x", "images"),
    "labels": ("y", "labels"),
    "ids": ("ids", "id"),
    "class_names": ("class_names",),
    "feature_names": ("feature_names",),
}
"""What the arrays of a `.npz` file are called; of a split as in `test_images` or `x_test`."""

IMAGES, LABELS = "-images-idx3-ubyte", "-labels-idx1-ubyte"
"""What follows the prefix in the names of IDX files; `.gz` may follow."""

TEST = "t10k"
"""MNIST calls its test split so; it is read where no split is named."""

_MOST_GZIP = 1032
"""Deflate shrinks by no more than this factor."""

_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError, struct.error, EOFError, OSError, ValueError, TypeError),
    *(SyntaxError, LookupError, OverflowError, NotImplementedError, RecursionError, MemoryError),
)
"""What zip files and NumPy raise on broken files."""


def is_idx_folder(path: Path) -> bool:
    """Whether `path` is a folder with an IDX image file."""
    return path.is_dir() and bool(_prefixes(path))


def read_npy(path: Path, reading: Reading) -> ListedPoints:
    """Points in a `.npy` file, `[N, *shape]`, with the class index of each in `reading.labels`, `[N]`."""
    refuse_split(path, reading.split)
    inputs = check_inputs(read_array(path), path_text(path), reading)
    read, answers = partial(read_arrays, inputs, reading.bounds, None), read_answers(reading, len(inputs))
    return reading.points(reading.record(path, file_digest(path)), RowIds(len(inputs)), read, **answers)


def read_answers(reading: Reading, count: int) -> dict[str, Any]:
    """What is right for each of `count` points, in a `.npy` file of its own, as `answers_of` gives it."""
    if reading.labels is None:
        return {}
    path = Path(reading.labels)
    if not path.is_file():
        raise DataError("no_such_path", f"{path_text(path)} (--labels, labels=) does not exist")
    return answers_of(read_array(path), path_text(path), count, reading.targets)


def read_array(path: Path) -> np.ndarray:
    """The array in a `.npy` file, read where it is used: what is changed in memory does not reach the file."""
    where = path_text(path)
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)  # without it NumPy would look for an archive or a pickle
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        declared, there = array.nbytes, path.stat().st_size - array.offset
        if declared != there or not array.dtype.itemsize:
            raise ValueError(f"its header declares {declared:,} bytes, and {there:,} follow")
        return array
    except _ERRORS as error:
        raise _unreadable(where, ".npy", error) from error


def read_npz(path: Path, reading: Reading) -> ListedPoints:
    """Points in a `.npz` file: `x` or `images`, `y` or `labels`, `ids`, `class_names`, `feature_names`.

    With a split the keys are those of MedMNIST (`test_images`, `test_labels`) or Keras (`x_test`, `y_test`). Three
    axes under `images` are grey images, which get a channel axis where the layout has it; `x` is taken as it is.
    """
    keys, arrays = _read_arrays(path, reading.split)
    where = {role: f"{key} in {path_text(path)}" for role, key in keys.items()}
    x = arrays["inputs"]
    if x.ndim == 3 and "images" in keys["inputs"]:
        x = x[..., None] if reading.layout == "nhwc" else x[:, None]
    inputs = check_inputs(x, where["inputs"], reading)
    answers = answers_of(arrays.get("labels"), where.get("labels", ""), len(inputs), reading.targets)
    named = feature_record(arrays.get("feature_names"), where.get("feature_names", ""), inputs)
    names = arrays.get("class_names")
    return reading.points(
        reading.record(path, file_digest(path), keys=sorted(keys.values()), **named),
        text_ids(arrays.get("ids"), where.get("ids", ""), len(inputs)),
        partial(read_arrays, inputs, reading.bounds, None),
        class_names=None if names is None else [str(name) for name in names.reshape(-1)],
        **answers,
    )


def read_idx(path: Path, reading: Reading) -> ListedPoints:
    """Points in `PREFIX-images-idx3-ubyte[.gz]`, `[N, 1, H, W]`, and `PREFIX-labels-idx1-ubyte[.gz]`. The split is the
    prefix, the end of one after a hyphen, or `test` for `t10k`; by default `t10k` or the only prefix."""
    prefixes, split = _prefixes(path), reading.split or TEST
    meant = [one for one in prefixes if one == split or one.endswith(f"-{split}") or (split, one) == ("test", TEST)]
    prefix = meant[0] if len(meant) == 1 else choose_split(path, prefixes, reading.split)
    both = [[path / f"{prefix}{ending}{packed}" for packed in ("", ".gz")] for ending in (IMAGES, LABELS)]
    files = [one for pair in both for one in [one for one in pair if one.is_file()][:1]]
    images = _read_idx(files[0], 3)
    answers = answers_of(_read_idx(files[1], 1), path_text(files[1]), len(images), False) if len(files) > 1 else {}
    inputs = check_inputs(images[:, None], path_text(files[0]), Reading(scale_uint8=True))
    return reading.points(
        reading.record(path, files_digest(path, files), split=prefix, files=[path_text(one.name) for one in files]),
        RowIds(len(images)),
        partial(read_arrays, inputs, reading.bounds, None),
        **answers,
    )


def _prefixes(path: Path) -> list[str]:
    names = (one.name.removesuffix(".gz") for one in path.iterdir() if one.is_file())
    return sorted({name.removesuffix(IMAGES) for name in names if name.endswith(IMAGES)})


def _read_idx(path: Path, axes: int) -> np.ndarray:
    """The whole numbers 0..255 in an IDX file with this many axes: a mark, the sizes, the numbers."""
    packed, mark = path.suffix == ".gz", bytes([0, 0, 8, axes])
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            header = file.read(4 + 4 * axes)
            if len(header) < 4 + 4 * axes or header[:4] != mark:
                raise ValueError(f"it begins with {header[:4].hex() or 'nothing'}; expected {mark.hex()} and the sizes")
            shape = struct.unpack(f">{axes}I", header[4:])
            if not packed and path.stat().st_size == len(header) + math.prod(shape) > len(header):
                return np.memmap(path, np.uint8, "c", len(header), shape)
            content = file.read(min(math.prod(shape), path.stat().st_size * (_MOST_GZIP if packed else 1)) + 1)
        if len(content) != math.prod(shape) or 0 in shape[1:]:
            raise ValueError(f"it declares {' x '.join(map(str, shape))} bytes and holds others; get it again")
    except _ERRORS as error:
        raise _unreadable(path_text(path), "IDX", error) from error
    return np.frombuffer(bytearray(content), np.uint8).reshape(shape)


def _read_arrays(path: Path, split: str | None) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Key and array for each role that a `.npz` file fills."""
    try:
        if not zipfile.is_zipfile(path):
            raise zipfile.BadZipFile("it is no zip archive")
        with np.load(path, allow_pickle=False) as archive:
            for record in archive.zip.infolist():
                # In ways that NumPy does not write a small file can hold any size.
                if record.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or record.flag_bits & 1:
                    raise zipfile.BadZipFile(f"{record.filename!r:.80} is encrypted, or compressed as NumPy never does")
            keys = _keys(path, archive.files, split)
            arrays = {role: archive[key] for role, key in keys.items()}
        for role, array in arrays.items():
            if not isinstance(array, np.ndarray) or (array.size and not array.dtype.itemsize):
                raise zipfile.BadZipFile(f"{keys[role]} is no array, or has entries of no bytes")
            if array.dtype.kind == "U" and array.size:
                points = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
                if not ((points < 0xD800) | ((points > 0xDFFF) & (points <= 0x10FFFF))).all():
                    raise zipfile.BadZipFile(f"{keys[role]} holds code points that are no characters")
        return keys, arrays
    except _ERRORS as error:
        raise _unreadable(path_text(path), ".npz", error) from error


def _keys(path: Path, keys: Sequence[str], split: str | None) -> dict[str, str]:
    """Which key of a `.npz` file plays which role of `KEYS`."""
    named = [(key, key) for key in keys]
    if split is not None:
        short = [(key.removeprefix(f"{split}_").removesuffix(f"_{split}"), key) for key in keys]
        named = [(own, key) for own, key in short if own != key or key in ("class_names", "feature_names")]
    chosen = dict[str, str]()
    for role, names in KEYS.items():
        there = [key for name in names for own, key in named if own == name]
        if len(there) > 1:
            raise DataError("columns", f"{path_text(path)} has {' and '.join(there)}, and each may be its {role}")
        chosen |= dict.fromkeys([role], there[0]) if there else {}
    if "inputs" not in chosen:
        raise DataError(
            "columns" if split is None else "split",
            f"{path_text(path)} has no x or images{'' if split is None else f' of the split {split!r:.40}'}; it has "
            f"{', '.join(keys) or 'no keys at all'}: call the inputs x and the labels y, or name with --split "
            "(split=) a split that stands in these keys",
        )
    return chosen


def _unreadable(where: str, kind: str, error: BaseException) -> DataError:
    """The error for a file that is broken, or whose arrays would have to be unpickled."""
    reason = str(error).partition("\n")[0] or type(error).__name__
    if "Object arrays" in reason or "Python objects" in reason:
        return DataError(
            "dtype",
            f"{where} holds Python objects, which would have to be unpickled and could run code; save plain arrays, "
            "np.stack(list(x))",
        )
    return DataError("corrupt", f"{where} is not a readable {kind} file: {reason}")
