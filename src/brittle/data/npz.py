"""Points in `.npz` files."""

from __future__ import annotations

import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from brittle.data.arrays import check_inputs, list_points, named_features, right_answers, text_ids
from brittle.data.files import file_digest, path_text
from brittle.data.listed import ListedPoints
from brittle.data.options import ReadingOptions
from brittle.errors import DataError

INPUT_KEYS, LABEL_KEYS, ID_KEYS = ("x", "images"), ("y", "labels"), ("ids", "id")
"""What the arrays of a `.npz` file are called."""

SPLIT_KEYS = ("{split}_{key}", "{key}_{split}")
"""How the name of a split is joined to such a key, as in `test_images` or `x_test`."""

NAME_KEYS = ("class_names", "feature_names")
"""What arrays of names are called; feature names are kept where a run keeps inputs."""

_NPZ_ERRORS = (
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


def read_npz(path: Path, options: ReadingOptions) -> ListedPoints:
    """Points in a `.npz` file: `x` or `images`, `y` or `labels`, `ids`, `class_names`, `feature_names`; nothing is
    unpickled.

    With a split the keys are those of MedMNIST (`test_images`, `test_labels`) or Keras (`x_test`, `y_test`). Three
    axes under `images` are grey images, which get a channel axis where `options.layout` has it; `x` is taken as it is.

    Raises:
        DataError: the file is damaged, lacks the keys, or holds arrays of another form.
    """
    keys, arrays = _read_npz(path, options.split)
    where = {role: f"{key} in {path_text(path)}" for role, key in keys.items()}
    x = arrays["inputs"]
    if x.ndim == 3 and keys["inputs"] in _called("images", options.split):
        x = x[..., None] if options.layout == "nhwc" else x[:, None]
    inputs = check_inputs(x, where["inputs"], options)
    right = right_answers(arrays.get("labels"), where.get("labels", ""), len(inputs), options)
    ids = text_ids(arrays.get("ids"), where.get("ids", ""), len(inputs))
    kept = slice(options.limit)
    provenance = {
        "format": "npz",
        "path": path_text(path),
        "split": options.split,
        "sha256": file_digest(path),
        "points": len(inputs[kept]),
        "limit": options.limit,
        "keys": sorted(keys.values()),
        "layout": options.layout,
        "scale_uint8": options.scale_uint8,
    }
    provenance |= named_features(arrays.get("feature_names"), where.get("feature_names", ""), inputs)
    names = arrays.get("class_names")
    class_names = None if names is None else [str(name) for name in names.reshape(-1)]
    return list_points(inputs[kept], right.first(options.limit), ids[kept], class_names, options, provenance)


def _read_npz(path: Path, split: str | None) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Key and array for each role that a `.npz` file fills."""
    try:
        if not zipfile.is_zipfile(path):
            raise zipfile.BadZipFile("it is no zip archive")
        with np.load(path, allow_pickle=False) as archive:
            _check_records(archive.zip)
            keys = _keys(path, archive.files, split)
            return keys, {role: _array(archive, path, key) for role, key in keys.items()}
    except _NPZ_ERRORS as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError("corrupt", f"{path_text(path)} is not a readable .npz file: {reason}") from error


def _check_records(archive: zipfile.ZipFile) -> None:
    """Raise where a record is compressed in another way than by NumPy; in others a small file can hold any size."""
    for record in archive.infolist():
        if record.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or record.flag_bits & 1:
            raise zipfile.BadZipFile(
                f"{record.filename!r:.80} is encrypted, or compressed in a way that NumPy does not write"
            )


def _keys(path: Path, keys: Sequence[str], split: str | None) -> dict[str, str]:
    """Which key of a `.npz` file plays which role: `inputs`, `labels`, `ids`, and those of `NAME_KEYS`."""
    roles = {"inputs": INPUT_KEYS, "labels": LABEL_KEYS, "ids": ID_KEYS}
    found = {}
    for role, names in roles.items():
        there = [own for key in names for own in _called(key, split) if own in keys]
        if len(there) > 1:
            raise DataError(
                "columns",
                f"{path_text(path)} has {' and '.join(there)}, and each may be its {role}; save it with one of them",
            )
        found |= {role: there[0]} if there else {}
    if "inputs" not in found:
        raise _no_inputs(path, keys, split)
    return found | {key: key for key in NAME_KEYS if key in keys}


def _called(key: str, split: str | None) -> tuple[str, ...]:
    """What an array is called in a file, by itself or as one of a split."""
    return tuple(form.format(split=split, key=key) for form in SPLIT_KEYS) if split else (key,)


def _no_inputs(path: Path, keys: Sequence[str], split: str | None) -> DataError:
    splits = _splits(keys)
    if splits:
        asked = "no split was named" if split is None else f"there is no split {split!r}"
        return DataError(
            "split",
            f"{path_text(path)} holds the splits {', '.join(splits)}; {asked}: name one with --split (split=)",
        )
    if split is not None and set(keys) & set(INPUT_KEYS):
        return DataError(
            "split",
            f"{path_text(path)} has no splits (its keys: {', '.join(keys)}); leave out --split (split=)",
        )
    return DataError(
        "columns",
        f"{path_text(path)} has none of the keys {', '.join(INPUT_KEYS)}; it has "
        f"{', '.join(keys) or 'no keys at all'}; call the inputs x, and the labels y",
    )


def _splits(keys: Sequence[str]) -> list[str]:
    """The splits that the keys of a `.npz` file are named for."""
    patterns = [re.compile(form.format(split="(.+)", key=key)) for key in INPUT_KEYS for form in SPLIT_KEYS]
    return sorted({match[1] for key in keys for pattern in patterns if (match := pattern.fullmatch(key))})


def _array(archive: Any, path: Path, key: str) -> np.ndarray:
    try:
        array = archive[key]
        if not isinstance(array, np.ndarray):
            raise zipfile.BadZipFile(f"{key} is no array")
        if array.size and not array.dtype.itemsize:
            raise zipfile.BadZipFile(f"{key} says that it has {array.size:,} entries of no bytes")
        if array.dtype.kind == "U" and array.size and not _is_text(array):
            raise zipfile.BadZipFile(f"{key} holds code points that are no characters")
        return array
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise DataError(
            "dtype",
            f"{key} in {path_text(path)} holds Python objects, which would have to be unpickled and could run code; "
            f"save a plain array: np.savez(..., {key}=np.stack(list({key})))",
        ) from error


def _is_text(array: np.ndarray) -> bool:
    """Whether all code points in an array of text are characters."""
    points = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
    return bool(((points < 0xD800) | ((points > 0xDFFF) & (points <= 0x10FFFF))).all())
