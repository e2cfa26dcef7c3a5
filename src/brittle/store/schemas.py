"""The columns of the tables of a run, and the inputs and votes in them, as bytes in a cell. Inputs are no images.

The cell of an input holds its numbers in the order of its axes (C order), little-endian: four bytes each where the
network computed in single precision or less, so that nothing is rounded, and eight otherwise. Bytes and not lists: a
Parquet file of 885 bytes can hold a list of 100,000,000 equal numbers, and PyArrow can neither be asked how long it is
before it is read, nor be told to stop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

TEXT, WHOLE, NUMBER, BYTES = pa.string(), pa.int64(), pa.float64(), pa.binary()


def _schema(columns: Mapping[str, pa.DataType], filled: Sequence[str]) -> pa.Schema:
    """Return the schema with these columns; those in `filled` hold no null."""
    return pa.schema([pa.field(name, kind, nullable=name not in filled) for name, kind in columns.items()])


POINTS = _schema(
    {
        "point": TEXT, "row": WHOLE, "name": TEXT, "label": WHOLE, "predicted": WHOLE, "target": TEXT, "decided": TEXT,
        "correct": pa.bool_(), "label_probability": NUMBER, "status": TEXT, "detail": TEXT, "passes": WHOLE,
        "image": BYTES, "input": BYTES,
    },
    filled=("point", "row", "status", "passes"),
)  # fmt: skip
"""Schema of points: id, position and name in the data, label and predicted class; where the decision is not a class,
the target and the decision in words (several labels are a class, too: a number whose bits they are); whether both
agree, the probability that the model gives the label, what was wrong with the point if anything, all passes spent on
it, a PNG thumbnail where the input is an image, and otherwise a small input itself (`keeps`)."""

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
in `votes` the classes that these copies became, where the decision is a class (`ClassVotes`)."""

COUNTEREXAMPLES = _schema(
    {
        "point": TEXT, "score": TEXT, "parameters": TEXT, "predicted": WHOLE, "decided": TEXT, "image": BYTES,
        "difference": BYTES, "input": BYTES,
    },
    filled=("point", "score", "parameters"),
)  # fmt: skip
"""One row per point and score that found an input with another prediction: the class there, or what is decided there in
words (as for points), and, where inputs are images, PNG thumbnails of it and of the difference, magnified to the full
range around mid-grey; that input itself where inputs are no images and small."""

SHARD_KINDS = {"points": POINTS, "scores": SCORES, "counterexamples": COUNTEREXAMPLES}  # the kinds of shard file
MAX_KEPT = 256  # inputs with at most so many numbers are kept
_TYPES = {4: np.dtype("<f4"), 8: np.dtype("<f8")}  # types of the numbers of a cell, by the bytes that each takes


def keeps(shape: Sequence[int]) -> bool:
    """Return whether inputs of this shape are small enough to be kept."""
    return min(shape, default=1) >= 1 and math.prod(shape) <= MAX_KEPT


def pack(values: np.ndarray) -> list[bytes]:
    """Return inputs `[N, ...]`, float32 or float64, as cells, `[N]`."""
    return [row.tobytes() for row in np.ascontiguousarray(values, _TYPES[values.dtype.itemsize])]


def unpack(column: pa.ChunkedArray, numbers: int) -> np.ndarray:
    """Return the inputs in a column, `[N, numbers]`, float64; NaN where a row has none."""
    cells = column.to_pylist()
    inputs = np.full((len(cells), numbers), np.nan)
    for size, kind in _TYPES.items():
        rows = [row for row, cell in enumerate(cells) if cell is not None and len(cell) == size * numbers]
        inputs[rows] = np.frombuffer(b"".join(cells[row] for row in rows), kind).reshape(len(rows), numbers)
    if any(cell is not None and len(cell) not in (size * numbers for size in _TYPES) for cell in cells):
        raise ValueError(f"a cell does not hold {numbers} numbers")
    return inputs


def problem_of(rows: pa.Table, shape: Sequence[int] | None) -> str | None:
    """Say what is wrong with the inputs of points or counterexamples; None where nothing is."""
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


_NUMBER, _HEAD, _ENTRY = np.dtype("<i4"), 2, 3


@dataclass(frozen=True, eq=False)
class ClassVotes:
    """The votes of `N` points, and a row for each class that a point has votes for, `K` in all; int64.
    Of each point: independent `units` of noise, and copies in each, `members`, 1 or 2. Of each row: the `place` of its
    point, the class, and the units of which one copy voted for it, `once`, or both."""

    units: NDArray[np.int64]
    members: NDArray[np.int64]
    place: NDArray[np.int64]
    index: NDArray[np.int64]
    once: NDArray[np.int64]
    twice: NDArray[np.int64]

    @property
    def copies(self) -> NDArray[np.int64]:
        """Copies that voted for the class, `[K]`."""
        return self.once + 2 * self.twice

    @property
    def draws(self) -> NDArray[np.int64]:
        """Copies of each point, `[N]`."""
        return self.units * self.members

    def most_other(self, than: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first class with the most votes beside that of each point, `[N]`; -1 for none."""
        classes = np.full(len(self.units), -1)
        rivals = np.flatnonzero(self.index != than[self.place])
        order = rivals[np.lexsort((-self.index[rivals], self.copies[rivals]))]
        classes[self.place[order]] = self.index[order]  # the last of each point stays
        return classes


def pack_votes(units: NDArray, classes: NDArray) -> list[bytes]:
    """Return votes as cells, `[N]`, of units with one copy for a class and, in pairs, with both, `[N, C, members]`.
    A cell holds little-endian whole numbers of four bytes: the units, the copies in each, and for every class with a
    vote its index and both counts, in their order. Copies that are missing there tied, or were not finite."""
    members = classes.shape[2]
    place, index = np.nonzero(classes.any(axis=2))
    rows = np.zeros((len(place), _ENTRY), _NUMBER)
    rows[:, 0], rows[:, 1 : 1 + members] = index, classes[place, index]
    ends = np.searchsorted(place, np.arange(len(units) + 1))
    heads = np.stack((units, np.full(len(units), members)), axis=1).astype(_NUMBER)
    return [head.tobytes() + rows[low:end].tobytes() for head, low, end in zip(heads, ends[:-1], ends[1:], strict=True)]


def unpack_votes(cells: list[bytes | None]) -> ClassVotes:
    """Return the votes of cells, in their order; None holds no votes."""
    filled = [cell or np.zeros(_HEAD, _NUMBER).tobytes() for cell in cells]
    sizes = np.array([len(cell) for cell in filled], dtype=np.int64) // _NUMBER.itemsize
    if any((len(cell) // _NUMBER.itemsize - _HEAD) % _ENTRY or len(cell) % _NUMBER.itemsize for cell in filled):
        raise ValueError("a cell has another number of bytes than votes take")
    numbers = np.frombuffer(b"".join(filled), _NUMBER).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    entries = np.ones(len(numbers), dtype=bool)
    entries[starts] = entries[starts + 1] = False
    index, once, twice = numbers[entries].reshape(-1, _ENTRY).T
    place = np.repeat(np.arange(len(filled)), (sizes - _HEAD) // _ENTRY)
    votes = ClassVotes(numbers[starts], numbers[starts + 1], place, index, once, twice)
    totals = np.bincount(place, votes.copies, minlength=len(filled))
    ordered = (np.diff(index) > 0) | (np.diff(place) > 0)
    if numbers.min(initial=0) < 0 or (votes.members > 2).any() or (totals > votes.draws).any() or not ordered.all():
        raise ValueError("the votes in a cell cannot come from noisy copies")
    return votes


def problem_of_votes(rows: pa.Table) -> str | None:
    """Say what is wrong with the votes of scores; None where nothing is."""
    try:
        unpack_votes(rows["votes"].unique().to_pylist())
    except ValueError as error:
        return f"holds damaged votes: {error}"
    return None


def describe_index(index: pd.Index, points: pa.Table) -> dict[str, Any]:
    """Return type and name of an index, and the column of points with its labels, as texts or typed."""
    name = index.name if isinstance(index.name, str | int) else None
    for column in points.column_names:
        description = {"dtype": str(index.dtype), "name": name, "column": column}
        restored = make_index(points, description)
        if restored is not None and restored.equals(index):
            return description
    column = "point" if points["point"].equals(points["name"]) else "name"
    return {"dtype": "object", "name": name, "column": column}


def make_index(points: pa.Table, description: Mapping[str, Any]) -> pd.Index | None:
    """Make the index that `describe_index` described; None where the points do not have it."""
    import pandas as pd

    try:
        labels = pd.Index(points[description["column"]].to_pylist())
        return labels.astype(description["dtype"]).rename(description["name"])
    except (ArithmeticError, LookupError, NotImplementedError, TypeError, ValueError):
        return None
