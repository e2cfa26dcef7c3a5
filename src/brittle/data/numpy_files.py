"""Points in `.npy` and `.npz` files, which are never unpickled, and in the IDX files of MNIST."""

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

from brittle.data.arrays import as_tensor, check_input_form, check_inputs, feature_record, read_arrays, text_ids
from brittle.data.files import choose_split, file_digest, files_digest, path_text, refuse_split
from brittle.data.labels import answers_of, check_form, file_answers
from brittle.data.points import ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import DataError, first_line

KEYS = {  # keys of the arrays of a `.npz` file; of a split as in `test_images` or `x_test`
    "inputs": ("x", "images"),
    "labels": ("y", "labels"),
    "ids": ("ids", "id"),
    "class_names": ("class_names",),
    "feature_names": ("feature_names",),
}

IMAGES, LABELS = "-images-idx3-ubyte", "-labels-idx1-ubyte"  # ends of names; `.gz` may follow
TEST = "t10k"  # MNIST calls its test split so; it is read where no split is named
_MOST_DEFLATE = 1032  # deflate shrinks by no more than this factor
_CHUNK = 1 << 20  # bytes that are unpacked at a time
_ERRORS = (  # exceptions of zip files and NumPy on broken files
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError, struct.error, EOFError, OSError, ValueError, TypeError),
    *(SyntaxError, LookupError, OverflowError, NotImplementedError, RecursionError, MemoryError),
)


def is_idx_folder(path: Path) -> bool:
    """Return whether `path` is a folder with an IDX image file."""
    return path.is_dir() and bool(_prefixes(path))


def read_npy(path: Path, reading: Reading) -> ListedPoints:
    """Points in a `.npy` file, `[N, *shape]`, with the class index of each in `reading.labels`, `[N]`."""
    refuse_split(path, reading.split)
    inputs = check_inputs(read_array(path), path_text(path), reading)
    read, answers = partial(read_arrays, inputs, reading.bounds, None), read_answers(reading, len(inputs))
    return reading.points(reading.record(path, file_digest(path)), RowIds(len(inputs)), read, **answers)


def read_answers(reading: Reading, count: int) -> dict[str, Any]:
    """Return the labels of each of `count` points, in a `.npy` file of their own, as `file_answers` gives them."""
    if reading.labels is None:
        return {}
    path = Path(reading.labels)
    if not path.is_file():
        raise DataError("no_such_path", f"{path_text(path)} (--labels, labels=) does not exist")
    return file_answers(read_array(path), path_text(path), count, reading.targets)


def read_array(path: Path) -> np.ndarray:
    """Return the array in a `.npy` file, read where it is used: what is changed in memory does not reach the file."""
    source = path_text(path)
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)  # without it NumPy would look for an archive or a pickle
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        declared, stored = array.nbytes, path.stat().st_size - array.offset
        if declared != stored or not array.dtype.itemsize:
            raise ValueError(f"its header declares {declared:,} bytes, and {stored:,} follow")
        return array
    except _ERRORS as error:
        raise _unreadable(source, ".npy", error) from error


def read_npz(path: Path, reading: Reading) -> ListedPoints:
    """Read points in a `.npz` file by `KEYS`; of a split, `test_images` as of MedMNIST or `x_test` as of Keras.
    Three axes under `images` are grey images, which get a channel axis; `x` is taken as it is."""
    keys, arrays = _read_arrays(path, reading)
    sources = {role: f"{key} in {path_text(path)}" for role, key in keys.items()}
    x = arrays["inputs"]
    inputs = check_inputs(x.reshape(_with_channels(x.shape, keys["inputs"], reading)), sources["inputs"], reading)
    names = arrays.get("class_names")
    names = None if names is None else [str(name) for name in names.reshape(-1)]
    answers = file_answers(arrays.get("labels"), sources.get("labels", ""), len(inputs), reading.targets, names)
    names_record = feature_record(arrays.get("feature_names"), sources.get("feature_names", ""), inputs)
    return reading.points(
        reading.record(path, file_digest(path), keys=sorted(keys.values()), **names_record),
        text_ids(arrays.get("ids"), sources.get("ids", ""), len(inputs)),
        partial(read_arrays, inputs, reading.bounds, None),
        **answers,
    )


def read_idx(path: Path, reading: Reading) -> ListedPoints:
    """Read IDX files. The split is the prefix or its end, `test` for `t10k`; by default `t10k` or the only one."""
    prefixes, split = _prefixes(path), reading.split or TEST
    meant = [name for name in prefixes if f"-{name}".endswith(f"-{split}") or (split, name) == ("test", TEST)]
    prefix = meant[0] if len(meant) == 1 else choose_split(path, prefixes, reading.split)
    pairs = [[path / f"{prefix}{ending}{packed}" for packed in ("", ".gz")] for ending in (IMAGES, LABELS)]
    files = [file for pair in pairs for file in [file for file in pair if file.is_file()][:1]]
    shapes = [_idx_shape(file, axes) for file, axes in zip(files, (3, 1), strict=False)]
    for file, shape in zip(files[1:], shapes[1:], strict=True):
        check_form(shape, np.dtype(np.uint8), path_text(file), shapes[0][0], targets=False)
    images, *labels = (_read_idx(file, shape) for file, shape in zip(files, shapes, strict=True))
    answers = answers_of(labels[0], path_text(files[1]), len(images), False) if labels else {}
    inputs = check_inputs(images[:, None], path_text(files[0]), Reading(scale_uint8=True))
    return reading.points(
        reading.record(path, files_digest(path, files), split=prefix, files=[path_text(file.name) for file in files]),
        RowIds(len(images)),
        partial(read_arrays, inputs, reading.bounds, None),
        **answers,
    )


def _with_channels(shape: tuple[int, ...], key: str, reading: Reading) -> tuple[int, ...]:
    """Return the shape of inputs, with an axis for the channel of grey images."""
    if len(shape) == 3 and "images" in key:
        return (*shape, 1) if reading.layout == "nhwc" else (shape[0], 1, *shape[1:])
    return shape


def _prefixes(path: Path) -> list[str]:
    names = (file.name.removesuffix(".gz") for file in path.iterdir() if file.is_file())
    return sorted({name.removesuffix(IMAGES) for name in names if name.endswith(IMAGES)})


def _idx_shape(path: Path, axes: int) -> tuple[int, ...]:
    """Return the sizes that an IDX file of whole numbers 0..255 with this many axes declares, behind a mark."""
    packed, mark = path.suffix == ".gz", bytes([0, 0, 8, axes])
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            header = file.read(4 + 4 * axes)
        if len(header) < 4 + 4 * axes or header[:4] != mark:
            raise ValueError(f"it begins with {header[:4].hex() or 'nothing'}; expected {mark.hex()} and the sizes")
    except _ERRORS as error:
        raise _unreadable(path_text(path), "IDX", error) from error
    return struct.unpack(f">{axes}I", header[4:])


def _read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of an IDX file with these sizes. Packed ones are counted before room is made for them."""
    start, size, packed = 4 + 4 * len(shape), math.prod(shape), path.suffix == ".gz"
    try:
        count = path.stat().st_size - start
        if packed and size <= (start + count) * _MOST_DEFLATE:
            with gzip.open(path) as file:
                count = sum(map(len, iter(partial(file.read, _CHUNK), b""))) - start
        if count != size or 0 in shape[1:]:
            raise ValueError(f"it declares {' x '.join(map(str, shape))} bytes and holds others; get it again")
        if not packed:
            return np.memmap(path, np.uint8, "c", start, shape) if size else np.empty(shape, np.uint8)
        numbers = np.empty(start + size, np.uint8)
        with gzip.open(path) as file:
            for place in range(0, start + size, _CHUNK):
                numbers[place : place + _CHUNK] = np.frombuffer(file.read(_CHUNK), np.uint8)
    except _ERRORS as error:
        raise _unreadable(path_text(path), "IDX", error) from error
    return numbers[start:].reshape(shape)


def _read_arrays(path: Path, reading: Reading) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return key and array for each role that a `.npz` file fills; all headers are checked before any array is read."""
    try:
        if not zipfile.is_zipfile(path):
            raise zipfile.BadZipFile("it is no zip archive")
        with np.load(path, allow_pickle=False) as archive:
            for record in archive.zip.infolist():
                # In ways that NumPy does not write a small file can hold any size.
                if record.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or record.flag_bits & 1:
                    raise zipfile.BadZipFile(f"{record.filename!r:.80} is encrypted, or compressed as NumPy never does")
            keys = _keys(path, archive.files, reading.split)
            _check_headers(path, {role: _header(archive.zip, key) for role, key in keys.items()}, keys, reading)
            arrays = {role: archive[key] for role, key in keys.items()}
        for role, array in arrays.items():
            if array.dtype.kind == "U" and array.size:
                points = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1).view(np.uint32)
                if not ((points < 0xD800) | ((points > 0xDFFF) & (points <= 0x10FFFF))).all():
                    raise zipfile.BadZipFile(f"{keys[role]} holds code points that are no characters")
        return keys, arrays
    except _ERRORS as error:
        raise _unreadable(path_text(path), ".npz", error) from error


def _header(archive: zipfile.ZipFile, key: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of an array, which must declare as many bytes as its record has."""
    record = archive.getinfo(key if key in archive.namelist() else f"{key}.npy")
    with archive.open(record) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        declared, stored = math.prod(shape) * dtype.itemsize, record.file_size - file.tell()
    if dtype.hasobject:
        raise ValueError("Python objects")
    if min(shape, default=0) < 0 or declared != stored or record.file_size > _MOST_DEFLATE * record.compress_size:
        raise ValueError(f"the header of {key} declares {declared:,} bytes, and {stored:,} follow")
    if math.prod(shape) and not dtype.itemsize:
        raise ValueError(f"{key} has entries of no bytes")
    return shape, dtype


def _check_headers(
    path: Path, headers: dict[str, tuple[tuple[int, ...], np.dtype]], keys: dict[str, str], reading: Reading
) -> None:
    """Raise where arrays of these shapes and types cannot be points and what belongs to them."""
    sources = {role: f"{key} in {path_text(path)}" for role, key in keys.items()}
    shape, dtype = headers["inputs"]
    axes = _with_channels(shape, keys["inputs"], reading)
    check_input_form(axes, as_tensor(np.empty(0, dtype), sources["inputs"]).dtype, sources["inputs"], reading)
    if "labels" in headers:
        check_form(*headers["labels"], sources["labels"], shape[0], reading.targets)
    sizes = {"ids": ("shape", shape[0], "points"), "feature_names": ("columns", math.prod(shape[1:]), "numbers")}
    for role, (code, size, noun) in sizes.items():
        if role in headers and (entries := math.prod(headers[role][0])) != size:
            raise DataError(code, f"{sources[role]} has {entries:,} entries for {size:,} {noun}; expected one for each")


def _keys(path: Path, keys: Sequence[str], split: str | None) -> dict[str, str]:
    """Return which key of a `.npz` file plays which role of `KEYS`."""
    pairs = [(key, key) for key in keys]
    if split is not None:
        short = [(key.removeprefix(f"{split}_").removesuffix(f"_{split}"), key) for key in keys]
        pairs = [(stem, key) for stem, key in short if stem != key or key in ("class_names", "feature_names")]
    chosen = dict[str, str]()
    for role, names in KEYS.items():
        matches = [key for name in names for stem, key in pairs if stem == name]
        if len(matches) > 1:
            raise DataError("columns", f"{path_text(path)} has {' and '.join(matches)}, and each may be its {role}")
        chosen |= dict.fromkeys([role], matches[0]) if matches else {}
    if "inputs" not in chosen:
        of_split = "" if split is None else f" of the split {split!r:.40}"
        raise DataError(
            "columns" if split is None else "split",
            f"{path_text(path)} has no x or images{of_split}; it has {', '.join(keys) or 'no keys at all'}: call the "
            "inputs x and the labels y, or name with --split (split=) a split that stands in these keys",
        )
    return chosen


def _unreadable(source: str, kind: str, error: BaseException) -> DataError:
    """Return the error for a file that is broken, or whose arrays would have to be unpickled."""
    reason = first_line(error)
    if "Object arrays" in reason or "Python objects" in reason:
        return DataError(
            "dtype", f"{source} holds Python objects, which would have to be unpickled; save np.stack(list(x))"
        )
    return DataError("corrupt", f"{source} is not a readable {kind} file: {reason}")
