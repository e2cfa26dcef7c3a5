"""Points held in arrays: tensors and NumPy arrays in memory, and `.npz` files."""

from __future__ import annotations

import hashlib
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.data.images import from_levels
from brittle.data.points import Chunk, ListedPoints, Options, file_digest, text
from brittle.errors import DataError, ParameterError

LAYOUTS = ("nchw", "nhwc")
"""Axis orders of image arrays: channels first, which models see, and channels last."""

INPUT_KEYS, LABEL_KEYS, ID_KEYS = ("x", "images"), ("y", "labels"), ("ids", "id")
"""What the arrays of a `.npz` file are called."""

SPLIT_KEYS = ("{split}_{key}", "{key}_{split}")
"""How the name of a split is joined to such a key, as in `test_images` or `x_test`."""

CLASS_NAMES_KEY = "class_names"

CHANNEL_COUNTS = (1, 3, 4)
LONGEST_CHANNELS = 4
"""An array `(N, H, W, C)` with `C` among these and `H`, `W` above that is taken for channels last."""

_CHUNK = 1 << 12

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


def array_points(
    x: Tensor | np.ndarray,
    y: Any = None,
    ids: Sequence[Any] | np.ndarray | Tensor | None = None,
    class_names: Sequence[str] | None = None,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    layout: str | None = None,
    scale_uint8: bool = False,
) -> ListedPoints:
    """Points in memory.

    Args:
        x: inputs `[N, *shape]`, floating point, in the declared units; they keep their device, and their precision
            where it is single or better.
        y: class index of each point, `[N]` or `[N, 1]`, whole numbers, or None.
        ids: id of each point, `[N]`, text or numbers; the row number by default.
        class_names: names of the classes in the order of their index.
        bounds: smallest and largest value of an input.
        layout: `nchw` or `nhwc` for image arrays; `nhwc` is transposed.
        scale_uint8: map whole numbers 0..255 (uint8) to the bounds.

    Returns:
        the points.

    Raises:
        DataError: the arrays are not of this form; the code says what is wrong.
        ParameterError: `bounds` or `layout` are not of this form.
    """
    options = Options(bounds=bounds, layout=layout, scale_uint8=scale_uint8)
    inputs = _inputs(x, "x", options)
    labels = _labels(y, "y", len(inputs))
    named = _ids(ids, "ids", len(inputs))
    return _listed(inputs, labels, named, class_names, options, _memory_provenance(inputs, labels, named))


def read_npz(path: Path, options: Options) -> ListedPoints:
    """Points in a `.npz` file: `x` or `images`, `y` or `labels`, `ids`, `class_names`; nothing in it is unpickled.

    With a split the keys are those of MedMNIST (`test_images`, `test_labels`) or Keras (`x_test`, `y_test`). Three
    axes under `images` are grey images, which get a channel axis; `x` is taken as it is.

    Raises:
        DataError: the file is damaged, lacks the keys, or holds arrays of another form.
    """
    keys, arrays = _read_npz(path, options.split)
    where = {role: f"{key} in {text(path)}" for role, key in keys.items()}
    x = arrays["inputs"]
    inputs = _inputs(x[:, None] if "images" in keys["inputs"] and x.ndim == 3 else x, where["inputs"], options)
    labels = _labels(arrays.get("labels"), where.get("labels", ""), len(inputs))
    ids = _ids(arrays.get("ids"), where.get("ids", ""), len(inputs))
    kept = slice(options.limit)
    provenance = {
        "format": "npz",
        "path": text(path),
        "split": options.split,
        "sha256": file_digest(path),
        "points": len(inputs[kept]),
        "limit": options.limit,
        "keys": sorted(keys.values()),
        "layout": options.layout,
        "scale_uint8": options.scale_uint8,
    }
    names = arrays.get("class_names")
    class_names = None if names is None else [str(name) for name in names.reshape(-1)]
    return _listed(inputs[kept], None if labels is None else labels[kept], ids[kept], class_names, options, provenance)


def array_chunks(inputs: Tensor, size: int, start: int, bounds: tuple[float, float]) -> Iterator[Chunk]:
    """The rows of `inputs` from `start`, `size` at a time; uint8 is mapped to the bounds, half precision to single."""
    for rows in inputs[start:].split(size):
        if rows.dtype == torch.uint8:
            yield Chunk(from_levels(rows, bounds))
        else:
            yield Chunk(rows.float() if rows.element_size() < 4 else rows)


def check_labels(labels: np.ndarray, where: str, count: int) -> tuple[int, ...]:
    """Class indices as a tuple, `[N]`, from whole numbers `[N]` or `[N, 1]`.

    Raises:
        DataError: they are of another kind, or not `count`.
    """
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 2:
        raise DataError(
            "label_dtype",
            f"{where} has shape {labels.shape}, which looks one-hot; give class indices: {where.split()[0]}.argmax(1)",
        )
    if labels.dtype.kind not in "iu":
        raise DataError(
            "label_dtype",
            f"{where} has type {labels.dtype}; class indices are whole numbers: convert with .astype('int64')",
        )
    if labels.ndim != 1 or len(labels) != count:
        raise DataError("length", f"{where} has shape {labels.shape} for {count} points; one label each is needed")
    return tuple(labels.tolist())


def _listed(
    inputs: Tensor,
    labels: tuple[int, ...] | None,
    ids: tuple[str, ...],
    class_names: Sequence[str] | None,
    options: Options,
    provenance: dict[str, Any],
) -> ListedPoints:
    return ListedPoints(
        ids=ids,
        read=lambda size, start: array_chunks(inputs, size, start, options.bounds),
        bounds=options.bounds,
        provenance=provenance,
        labels=labels,
        class_names=None if class_names is None else tuple(class_names),
    )


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
        raise DataError("corrupt", f"{text(path)} is not a readable .npz file: {reason}") from error


def _check_records(archive: zipfile.ZipFile) -> None:
    """Raise where a record is packed in another way than NumPy packs them; others shrink without bounds."""
    for record in archive.infolist():
        if record.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or record.flag_bits & 1:
            raise zipfile.BadZipFile(
                f"{record.filename!r:.80} is encrypted or packed in a way that NumPy does not write"
            )


def _keys(path: Path, keys: Sequence[str], split: str | None) -> dict[str, str]:
    """Which key of a `.npz` file plays which role: `inputs`, `labels`, `ids`, `class_names`."""
    roles = {"inputs": INPUT_KEYS, "labels": LABEL_KEYS, "ids": ID_KEYS}
    found = {}
    for role, names in roles.items():
        wanted = [form.format(split=split, key=key) for key in names for form in SPLIT_KEYS] if split else names
        there = [key for key in wanted if key in keys]
        found |= {role: there[0]} if there else {}
    if "inputs" not in found:
        raise _no_inputs(path, keys, split)
    return found | ({"class_names": CLASS_NAMES_KEY} if CLASS_NAMES_KEY in keys else {})


def _no_inputs(path: Path, keys: Sequence[str], split: str | None) -> DataError:
    splits = _splits(keys)
    if splits:
        asked = "no split was named" if split is None else f"there is no split {split!r}"
        return DataError(
            "split_missing", f"{text(path)} holds the splits {', '.join(splits)}; {asked}: name one with --split"
        )
    if split is not None and set(keys) & set(INPUT_KEYS):
        return DataError(
            "split_missing", f"{text(path)} has no splits (its keys: {', '.join(keys)}); leave out --split"
        )
    return DataError(
        "missing_key",
        f"{text(path)} has none of the keys {', '.join(INPUT_KEYS)}; it has {', '.join(keys) or 'no keys at all'}",
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
            "object_array",
            f"{key} in {text(path)} holds Python objects, which would have to be unpickled and could run code; save a "
            f"plain array: np.savez(..., {key}=np.stack(list({key})))",
        ) from error


def _is_text(array: np.ndarray) -> bool:
    """Whether all code points in an array of text are characters."""
    points = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
    return bool(((points < 0xD800) | ((points > 0xDFFF) & (points <= 0x10FFFF))).all())


def _inputs(x: Any, where: str, options: Options) -> Tensor:
    """Inputs `[N, *shape]` as a tensor of floating point numbers, or of uint8 that is to be mapped."""
    if options.layout is not None and options.layout not in LAYOUTS:
        raise ParameterError("layout", f"layout must be one of {', '.join(LAYOUTS)}; found {options.layout!r}")
    inputs = x.detach() if isinstance(x, Tensor) else _tensor(x, where)
    _check_dtype(inputs, where, options.scale_uint8)
    if inputs.dim() < 2 or 0 in inputs.shape[1:]:
        raise DataError("shape", f"{where} has shape {tuple(inputs.shape)}; (points, ...) with numbers in it is needed")
    if options.layout == "nhwc":
        if inputs.dim() != 4:
            shape = tuple(inputs.shape)
            raise DataError("layout", f"{where} has shape {shape}; the layout nhwc needs 4 axes, leave --layout out")
        return inputs.permute(0, 3, 1, 2).contiguous()
    if options.layout is None and _channels_last(inputs):
        raise DataError(
            "layout",
            f"{where} has shape {tuple(inputs.shape)}, which looks channels-last; use --layout nhwc (layout='nhwc') to "
            f"transpose it, or --layout nchw if the first axis after the points is the channels",
        )
    return inputs


def _channels_last(inputs: Tensor) -> bool:
    if inputs.dim() != 4:
        return False
    height, width, channels = inputs.shape[1:]
    return channels in CHANNEL_COUNTS and min(height, width) > LONGEST_CHANNELS


def _tensor(x: Any, where: str) -> Tensor:
    if not isinstance(x, np.ndarray):
        raise DataError("dtype", f"{where} is a {type(x).__name__}; a tensor or a NumPy array is needed")
    if x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
        raise DataError("dtype", f"{where} has type {x.dtype}; floating point numbers are needed, such as float32")
    native = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("="))
    return torch.from_numpy(native if native.flags.writeable else native.copy())


def _check_dtype(inputs: Tensor, where: str, scale_uint8: bool) -> None:
    name = str(inputs.dtype).removeprefix("torch.")
    if scale_uint8 and inputs.dtype != torch.uint8:
        raise DataError("dtype", f"{where} has type {name}, not uint8; leave --scale-uint8 out")
    if inputs.dtype == torch.uint8 and not scale_uint8:
        raise DataError(
            "dtype",
            f"{where} has type uint8; use --scale-uint8 (scale_uint8=True) to map 0..255 to the bounds, or convert to "
            f"float",
        )
    if not (inputs.is_floating_point() or inputs.dtype == torch.uint8):
        raise DataError("dtype", f"{where} has type {name}; floating point numbers are needed, such as float32")


def _labels(y: Any, where: str, count: int) -> tuple[int, ...] | None:
    if y is None:
        return None
    return check_labels(y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y), where, count)


def _ids(ids: Any, where: str, count: int) -> tuple[str, ...]:
    if ids is None:
        return tuple(str(row) for row in range(count))
    found = np.asarray(ids.cpu() if isinstance(ids, Tensor) else ids).reshape(-1).tolist()
    if len(found) != count:
        raise DataError("length", f"{where} has {len(found)} entries for {count} points; one id each is needed")
    return tuple(str(own) for own in found)


def _memory_provenance(inputs: Tensor, labels: tuple[int, ...] | None, ids: tuple[str, ...]) -> dict[str, Any]:
    digest = hashlib.sha256(repr((str(inputs.dtype), tuple(inputs.shape), labels, ids)).encode())
    for rows in inputs.split(_CHUNK):
        digest.update(rows.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return {
        "format": "memory",
        "path": None,
        "split": None,
        "sha256": digest.hexdigest(),
        "points": len(inputs),
        "limit": None,
    }
