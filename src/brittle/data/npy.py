"""Points in a `.npy` file, and labels in another."""

from __future__ import annotations

import math
import tokenize
from pathlib import Path

import numpy as np

from brittle.data.arrays import RightAnswers, check_inputs, list_points, right_answers
from brittle.data.files import file_digest, path_text
from brittle.data.listed import ListedPoints
from brittle.data.options import ReadingOptions
from brittle.errors import DataError

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""What reads the header of a file, by its version; NumPy writes the third for fields with names alone."""

_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    SyntaxError,
    tokenize.TokenError,
    OSError,
    EOFError,
    OverflowError,
    RecursionError,
    MemoryError,
)
"""What NumPy raises on broken headers, and systems on broken files."""


def is_npy(path: Path) -> bool:
    """Whether `path` is a `.npy` file."""
    return path.is_file() and path.suffix == ".npy"


def read_npy(path: Path, options: ReadingOptions) -> ListedPoints:
    """Points in a `.npy` file, `[N, *shape]`, with the class index of each in `options.label_file`, `[N]`.

    Raises:
        DataError: a file is damaged, or holds an array of another form.
    """
    where = path_text(path)
    if options.split is not None:
        raise DataError("split", f"{where} is one array and has no splits; leave out --split (split=)")
    inputs = check_inputs(read_array(path), where, options)
    right = RightAnswers() if options.label_file is None else read_answers(options.label_file, len(inputs), options)
    kept = slice(options.limit)
    provenance = {
        "format": "array",
        "path": where,
        "split": None,
        "sha256": file_digest(path),
        "points": len(inputs[kept]),
        "limit": options.limit,
        "layout": options.layout,
        "scale_uint8": options.scale_uint8,
    } | labels_provenance(options.label_file)
    ids = tuple(map(str, range(len(inputs[kept]))))
    return list_points(inputs[kept], right.first(options.limit), ids, None, options, provenance)


def read_answers(path: Path, count: int, options: ReadingOptions) -> RightAnswers:
    """The class index or the targets of each of `count` points, in a `.npy` file.

    Raises:
        DataError: the file is damaged, or its array is not of that form.
    """
    if not path.is_file():
        raise DataError("no_such_path", f"{path_text(path)} (--labels, labels=) does not exist")
    return right_answers(read_array(path), path_text(path), count, options)


def labels_provenance(path: Path | None) -> dict[str, str]:
    """What the record of a run holds of a file of labels."""
    return {} if path is None else {"labels_sha256": file_digest(path), "labels": path_text(path)}


def read_array(path: Path) -> np.ndarray:
    """The array in a `.npy` file; nothing is unpickled, and no more memory is taken than the file is long.

    Raises:
        DataError: the file is damaged, or holds Python objects.
    """
    where = path_text(path)
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in _HEADERS:
                raise ValueError(f"it is of version {version}; expected an array of numbers")
            shape, fortran, kind = _HEADERS[version](file)
            if kind.hasobject:
                raise DataError(
                    "dtype",
                    f"{where} holds Python objects, which would have to be unpickled and could run code; save a plain "
                    "array: np.save(..., np.stack(list(x)))",
                )
            expected, there = math.prod(shape) * kind.itemsize, path.stat().st_size - file.tell()
            if expected != there or not kind.itemsize:
                raise ValueError(f"its header declares {expected:,} bytes, and {there:,} follow")
            numbers = np.frombuffer(file.read(expected), kind)
    except _ERRORS as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError("corrupt", f"{where} is not a readable .npy file: {reason}") from error
    return numbers.reshape(shape, order="F" if fortran else "C")
