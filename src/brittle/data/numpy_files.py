"""Points in `.npy` and `.npz` files; nothing in them is unpickled."""

from __future__ import annotations

import math
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from brittle.data.arrays import array_chunks, check_inputs, feature_record, text_ids
from brittle.data.files import file_digest, path_text, refuse_split
from brittle.data.labels import answers_of
from brittle.data.points import ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import DataError

INPUT_KEYS, LABEL_KEYS, ID_KEYS = ("x", "images"), ("y", "labels"), ("ids", "id")
"""What the arrays of a `.npz` file are called."""

SPLIT_KEYS = ("{split}_{key}", "{key}_{split}")
"""How the name of a split is joined to such a key, as in `test_images` or `x_test`."""

NAME_KEYS = ("class_names", "feature_names")
"""What arrays of names are called; feature names are kept where a run keeps inputs."""

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""What reads the header of a `.npy` file, by its version; NumPy writes the third for fields with names alone."""

_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
    EOFError,
    OSError,
    ValueError,
    TypeError,
    SyntaxError,
    LookupError,
    OverflowError,
    NotImplementedError,
    RecursionError,
    MemoryError,
    struct.error,
)
"""What zip files and NumPy raise on broken files."""


def is_npy(path: Path) -> bool:
    """Whether `path` is a `.npy` file."""
    return path.is_file() and path.suffix == ".npy"


def is_npz(path: Path) -> bool:
    """Whether `path` is a `.npz` file."""
    return path.is_file() and path.suffix == ".npz"


def read_npy(path: Path, reading: Reading) -> ListedPoints:
    """Points in a `.npy` file, `[N, *shape]`, with the class index of each in `reading.labels`, `[N]`."""
    refuse_split(path, reading.split)
    inputs = check_inputs(read_array(path), path_text(path), reading)
    answers = read_answers(reading, len(inputs))
    read = partial(array_chunks, inputs, bounds=reading.bounds)
    return reading.points(reading.record(path, file_digest(path)), RowIds(len(inputs)), read, **answers)


def read_answers(reading: Reading, count: int) -> dict[str, Any]:
    """What is right for each of `count` points, in a `.npy` file of its own, as `answers_of` gives it."""
    path = reading.label_file
    if path is None:
        return {}
    if not path.is_file():
        raise DataError("no_such_path", f"{path_text(path)} (--labels, labels=) does not exist")
    return answers_of(read_array(path), path_text(path), count, reading.targets)


def read_array(path: Path) -> np.ndarray:
    """The array in a `.npy` file; no more memory is taken than the file is long."""
    where = path_text(path)
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in _HEADERS:
                raise ValueError(f"it is of version {version}; expected an array of numbers")
            shape, fortran, kind = _HEADERS[version](file)
            if kind.hasobject:
                raise _objects(where, "x")
            expected, there = math.prod(shape) * kind.itemsize, path.stat().st_size - file.tell()
            if expected != there or not kind.itemsize:
                raise ValueError(f"its header declares {expected:,} bytes, and {there:,} follow")
            numbers = np.frombuffer(file.read(expected), kind)
    except _ERRORS as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError("corrupt", f"{where} is not a readable .npy file: {reason}") from error
    return numbers.reshape(shape, order="F" if fortran else "C")


def read_npz(path: Path, reading: Reading) -> ListedPoints:
    """Points in a `.npz` file: `x` or `images`, `y` or `labels`, `ids`, `class_names`, `feature_names`.

    With a split the keys are those of MedMNIST (`test_images`, `test_labels`) or Keras (`x_test`, `y_test`). Three
    axes under `images` are grey images, which get a channel axis where the layout has it; `x` is taken as it is.
    """
    keys, arrays = _read_arrays(path, reading.split)
    where = {role: f"{key} in {path_text(path)}" for role, key in keys.items()}
    x = arrays["inputs"]
    if x.ndim == 3 and keys["inputs"] in _called("images", reading.split):
        x = x[..., None] if reading.layout == "nhwc" else x[:, None]
    inputs = check_inputs(x, where["inputs"], reading)
    answers = answers_of(arrays.get("labels"), where.get("labels", ""), len(inputs), reading.targets)
    named = feature_record(arrays.get("feature_names"), where.get("feature_names", ""), inputs)
    names = arrays.get("class_names")
    return reading.points(
        reading.record(path, file_digest(path), keys=sorted(keys.values()), **named),
        text_ids(arrays.get("ids"), where.get("ids", ""), len(inputs)),
        partial(array_chunks, inputs, bounds=reading.bounds),
        class_names=None if names is None else [str(name) for name in names.reshape(-1)],
        **answers,
    )


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
            return keys, {role: _array(archive, path, key) for role, key in keys.items()}
    except _ERRORS as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError("corrupt", f"{path_text(path)} is not a readable .npz file: {reason}") from error


def _keys(path: Path, keys: Sequence[str], split: str | None) -> dict[str, str]:
    """Which key of a `.npz` file plays which role: `inputs`, `labels`, `ids`, and those of `NAME_KEYS`."""
    chosen = {}
    for role, names in {"inputs": INPUT_KEYS, "labels": LABEL_KEYS, "ids": ID_KEYS}.items():
        there = [own for key in names for own in _called(key, split) if own in keys]
        if len(there) > 1:
            raise DataError(
                "columns",
                f"{path_text(path)} has {' and '.join(there)}, and each may be its {role}; save it with one of them",
            )
        chosen |= {role: there[0]} if there else {}
    if "inputs" in chosen:
        return chosen | {key: key for key in NAME_KEYS if key in keys}
    patterns = [re.compile(form.format(split="(.+)", key=key)) for key in INPUT_KEYS for form in SPLIT_KEYS]
    splits = sorted({match[1] for key in keys for pattern in patterns if (match := pattern.fullmatch(key))})
    if splits or (split is not None and set(keys) & set(INPUT_KEYS)):
        there = f"the splits {', '.join(splits)}" if splits else f"no splits (its keys: {', '.join(keys)})"
        raise DataError(
            "split", f"{path_text(path)} holds {there}; {'name one' if splits else 'leave out'} --split (split=)"
        )
    raise DataError(
        "columns",
        f"{path_text(path)} has none of the keys {', '.join(INPUT_KEYS)}; it has "
        f"{', '.join(keys) or 'no keys at all'}; call the inputs x, and the labels y",
    )


def _called(key: str, split: str | None) -> tuple[str, ...]:
    """What an array is called in a file, by itself or as one of a split."""
    return tuple(form.format(split=split, key=key) for form in SPLIT_KEYS) if split else (key,)


def _array(archive: Any, path: Path, key: str) -> np.ndarray:
    try:
        array = archive[key]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise _objects(f"{key} in {path_text(path)}", key) from error
    if not isinstance(array, np.ndarray):
        raise zipfile.BadZipFile(f"{key} is no array")
    if array.size and not array.dtype.itemsize:
        raise zipfile.BadZipFile(f"{key} says that it has {array.size:,} entries of no bytes")
    if array.dtype.kind == "U" and array.size:
        points = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
        if not ((points < 0xD800) | ((points > 0xDFFF) & (points <= 0x10FFFF))).all():
            raise zipfile.BadZipFile(f"{key} holds code points that are no characters")
    return array


def _objects(where: str, key: str) -> DataError:
    return DataError(
        "dtype",
        f"{where} holds Python objects, which would have to be unpickled and could run code; save a plain array, "
        f"np.stack(list({key}))",
    )
