"""The columns of the tables of a run, and the inputs in them: those that are no images and small, as bytes in a cell.

A cell holds the numbers of one input in the order of its axes (C order), little-endian: four bytes each where the
network computed in single precision or less, so that nothing is rounded, and eight otherwise. Bytes and not lists: a
Parquet file of 885 bytes can hold a list of 100,000,000 equal numbers, and PyArrow can neither be asked how long it is
before it is read, nor be told to stop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

TEXT, WHOLE, NUMBER, BYTES = pa.string(), pa.int64(), pa.float64(), pa.binary()


def _schema(columns: Mapping[str, pa.DataType], filled: Sequence[str]) -> pa.Schema:
    """The schema with these columns, of which those that are `filled` hold no null."""
    return pa.schema([pa.field(name, kind, nullable=name not in filled) for name, kind in columns.items()])


POINTS = _schema(
    {
        "point": TEXT, "row": WHOLE, "name": TEXT, "label": WHOLE, "predicted": WHOLE, "target": TEXT, "decided": TEXT,
        "correct": pa.bool_(), "status": TEXT, "detail": TEXT, "passes": WHOLE, "image": BYTES, "input": BYTES,
    },
    filled=("point", "row", "status", "passes"),
)  # fmt: skip
"""One row per point: its id, position and name in the data, label and predicted class; where the decision is no class,
what the data say and what was decided in words (several labels are a class, too: a number whose bits they are); whether
both agree, what was wrong with it if anything, all passes spent on it, a PNG thumbnail where the input is an image, and
the input itself where it is none and small (`keeps`)."""

SCORES = _schema(
    {
        "point": TEXT, "score": TEXT, "parameters": TEXT, "value": NUMBER, "low": NUMBER, "high": NUMBER,
        "status": TEXT, "detail": TEXT, "passes": WHOLE, "evidence": TEXT, "counted_low": NUMBER,
        "counted_high": NUMBER, "votes": BYTES,
    },
    filled=("point", "score", "parameters", "status", "passes"),
)  # fmt: skip
"""One row per point, score and parameters (a JSON object with sorted keys). Probability scores hold the flip
probability `1 - p_robust` as `value`, what stands behind it as `evidence` (`counted`, `modelled`, `extrapolated`,
`sampled`), in `counted_low` and `counted_high` the interval by the votes of the noisy copies that they looked at, and
in `votes` the classes that these copies became, where the decision is a class (`brittle.store.votes`)."""

COUNTEREXAMPLES = _schema(
    {
        "point": TEXT, "score": TEXT, "parameters": TEXT, "predicted": WHOLE, "decided": TEXT, "image": BYTES,
        "difference": BYTES, "input": BYTES,
    },
    filled=("point", "score", "parameters"),
)  # fmt: skip
"""One row per point and score that found an input with another prediction: the class there, or what is
decided there in words (as for points), and, where inputs are
images, PNG thumbnails of it and of the difference, magnified to the full range around mid-grey; that input itself where
inputs are no images and small."""

SHARD_KINDS = {"points": POINTS, "scores": SCORES, "counterexamples": COUNTEREXAMPLES}
"""The kinds of shard file."""

MAX_KEPT = 256
"""Inputs with at most so many numbers are kept."""

_TYPES = {4: np.dtype("<f4"), 8: np.dtype("<f8")}
"""What the numbers of a cell are, by the bytes that each takes."""


def keeps(shape: Sequence[int]) -> bool:
    """Whether inputs of this shape are small enough to be kept."""
    return min(shape, default=1) >= 1 and math.prod(shape) <= MAX_KEPT


def pack(values: np.ndarray) -> list[bytes]:
    """Inputs `[N, ...]`, float32 or float64, as cells, `[N]`.

    Example:
        >>> unpack(pa.chunked_array([pack(np.array([[0.5, 2.0]]))]), 2)
        array([[0.5, 2. ]])
    """
    kind = _TYPES[values.dtype.itemsize]
    return [one.tobytes() for one in np.ascontiguousarray(values, kind)]


def unpack(column: pa.ChunkedArray, numbers: int) -> np.ndarray:
    """The inputs in a column, `[N, numbers]`, float64; NaN where a row has none."""
    cells = column.to_pylist()
    found = np.full((len(cells), numbers), np.nan)
    for size, kind in _TYPES.items():
        rows = [row for row, cell in enumerate(cells) if cell is not None and len(cell) == size * numbers]
        found[rows] = np.frombuffer(b"".join(cells[row] for row in rows), kind).reshape(len(rows), numbers)
    if any(cell is not None and len(cell) not in (size * numbers for size in _TYPES) for cell in cells):
        raise ValueError(f"a cell does not hold {numbers} numbers")
    return found


def problem_of(rows: pa.Table, shape: Sequence[int] | None) -> str | None:
    """What is wrong with the inputs that points or counterexamples hold, in words; None where nothing is."""
    column = rows["input"]
    if column.null_count == len(column):
        return None
    if shape is None or not keeps(shape):
        return f"holds inputs where the run has none to keep (of shape {shape!s:.40})"
    try:
        unpack(column, math.prod(shape))
    except ValueError:
        return f"holds inputs that are no {math.prod(shape)} numbers of 4 or 8 bytes"
    return None
