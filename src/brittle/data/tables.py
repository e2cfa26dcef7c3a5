"""Tables of features, in text files and in Parquet: which column holds what, and the points that its rows are."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from brittle.data.arrays import array_chunks, feature_record
from brittle.data.files import file_digest, files_digest, path_text, refuse_split
from brittle.data.labels import LARGEST_LABEL, check_names, find_column, no_index
from brittle.data.parquet import (
    ROWS,
    class_names_of,
    is_image_column,
    is_parquet,
    open_parquet,
    parquet_files,
)
from brittle.data.points import ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import BrittleError, DataError, ParameterError

SUFFIXES = (".csv", ".tsv")
"""What text files of tables end in."""

LABEL_NAMES = ("label", "labels", "target", "targets", "class", "y")
"""A column that is called so holds the labels, if it is the only one and no other is named; case does not matter."""

ID_NAME = "id"
"""A column that is called so holds the ids; case does not matter."""

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Cells of text that stand for no value; case does not matter."""

_CHUNK = 1 << 12
"""Rows of a text file that are read at a time."""


@dataclass(frozen=True)
class DataTable:
    """A table, whose rows are read some at a time, once.

    Attributes:
        names: of the columns; None where it has no header.
        width: how many columns there are.
        chunks: the cells of some rows at a time, column by column.
        where: what it is called in messages.
        record: where it comes from.
        schema: types of the columns; None where all cells are text.
        lines: the line of the file in which each row that was read ends; empty where there are no lines.
    """

    names: Sequence[str] | None
    width: int
    chunks: Iterable[Sequence[Sequence[Any]]]
    where: str
    record: dict[str, Any]
    schema: pa.Schema | None = None
    lines: list[int] = field(default_factory=list[int])

    @property
    def class_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the classes of each column that is declared as one of classes."""
        return {} if self.schema is None else class_names_of(self.schema, self.where)

    def name(self, place: int) -> str:
        """A column as messages and the record call it: by its name, else by its place."""
        return str(place) if self.names is None else self.names[place]

    def place(self, row: int) -> str:
        """Where a row stands, in words."""
        return f"row {row} (line {self.lines[row]})" if self.lines else f"row {row}"


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are.

    Attributes:
        label: place of the labels, or None.
        id: place of the ids, or None.
        features: places of all others.
        targets: places of the numbers that are right for a row, where it has several labels or a number is predicted.
        text: place of the texts, or None.
    """

    label: int | None
    id: int | None
    features: tuple[int, ...]
    targets: tuple[int, ...] = ()
    text: int | None = None

    @property
    def answers(self) -> tuple[int, ...]:
        """Places of the columns that say what is right: the targets, or that of the labels."""
        return self.targets if self.label is None else (self.label,)


@dataclass(frozen=True)
class Cells:
    """What the rows of a table hold, `[N]` each; empty where no column has the role.

    Attributes:
        numbers: features, then targets, `[N, D]`, float64.
        labels: text, numbers or None.
        ids: as text.
        texts: text or None.
    """

    numbers: np.ndarray
    labels: list[Any]
    ids: list[str]
    texts: list[Any]


def is_csv(path: Path) -> bool:
    """Whether `path` is a text file of a table."""
    return path.is_file() and path.suffix.lower() in SUFFIXES


def is_feature_table(path: Path) -> bool:
    """Whether `path` is a text file of a table, or Parquet with a column of numbers and none of images."""
    if is_csv(path) or not is_parquet(path):
        return is_csv(path)
    file = path if path.is_file() else min(one for one in path.glob("*.parquet") if one.is_file())
    try:
        with open_parquet(file) as parquet:
            return has_features(parquet.schema)
    except BrittleError:
        return False  # the reader of image Parquet says what is wrong


def has_features(schema: pa.Schema) -> bool:
    """Whether there is a column of numbers besides labels and ids, and none of images."""
    apart = {ID_NAME, *LABEL_NAMES}
    numbers = [one.name for one in schema if _is_numeric(one.type) and one.name.lower() not in apart]
    return bool(numbers) and not any(is_image_column(one.type) for one in schema)


def read_features(path: Path, reading: Reading) -> ListedPoints:
    """The rows of a table of numbers, booleans among them; labels are whole numbers or text."""
    return table_points(open_table(path, reading), reading)


def open_table(path: Path, reading: Reading) -> DataTable:
    """The table in a text file, in a Parquet file, or in the Parquet files of one split in a folder."""
    if is_csv(path):
        return _csv_table(path, reading)
    files, split = parquet_files(path, reading.split)
    schemas = []
    for file in files:
        with open_parquet(file) as parquet:
            schemas.append(parquet.schema)
        if not schemas[-1].equals(schemas[0]):
            raise DataError(
                "columns",
                f"{path_text(file)} has the columns {schemas[-1].names}, {path_text(files[0])} has {schemas[0].names}; "
                "the files of a split must agree in names and types",
            )
    named = [path_text(one.name) for one in files]
    record = reading.record(path, files_digest(path, files), split=split, files=named)
    return arrow_table(schemas[0], chain.from_iterable(map(_batches, files)), path_text(path), record)


def arrow_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch], where: str, record: dict[str, Any]) -> DataTable:
    """A table of Arrow; a `ClassLabel` of Hugging Face names the classes."""
    chunks = ([column.to_pylist() for column in batch.columns] for batch in batches)
    return DataTable(schema.names, len(schema.names), chunks, where, record, schema)


def _csv_table(path: Path, reading: Reading) -> DataTable:
    """The table in a text file in UTF-8; cells are separated by commas, by semicolons where the first line has no
    comma, and in a `.tsv` file by tabs. Empty lines are left out.

    The first row names the columns where it says the column that is asked for, or one of `LABEL_NAMES` beside no
    numbers but 0, 1, 2, ..., or where none of its cells is a number.
    """
    where = path_text(path)
    refuse_split(path, reading.split)
    rows = _csv_rows(path, where)
    first = next(rows, None)
    if first is None:
        raise DataError("empty_dataset", f"{where} holds no rows; expected at least 1")
    named, width, lines = _is_header(first[1], reading, where), len(first[1]), list[int]()

    def chunks() -> Iterator[list[tuple[str, ...]]]:
        left = rows if named else chain([first], rows)
        while some := list(islice(left, _CHUNK)):
            for line, cells in some:
                lines.append(line)
                if len(cells) != width:
                    place = f"row {len(lines) - 1} (line {line})"
                    raise DataError(
                        "columns",
                        f"{place} of {where} has {len(cells)} cells and the first row {width}; mend the row",
                    )
            yield list(zip(*(cells for _, cells in some), strict=True))

    names = [cell.strip() for cell in first[1]] if named else None
    return DataTable(names, width, chunks(), where, reading.record(path, file_digest(path)), None, lines)


def _csv_rows(path: Path, where: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a text file that hold anything, each with the line in which it ends."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            start = file.readline()
            file.seek(0)
            comma = ";" if ";" in start and "," not in start else ","
            rows = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else comma, strict=True)
            for row in rows:
                if row:
                    yield rows.line_num, row
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise DataError("corrupt", f"{where} is not a readable table in UTF-8: {error}") from error


def _is_header(row: Sequence[str], reading: Reading, where: str) -> bool:
    """Whether the first row names the columns."""
    names = [cell.strip() for cell in row]
    asked = {one for one in (reading.label_column, reading.text_column) if one is not None and not is_number(one)}
    if asked.intersection(names):
        return True
    numbers = [name for name in names if is_number(name)]
    values = [name for name in numbers if name.lower() not in MISSING]
    label = next((name for name in names if name.lower() in LABEL_NAMES), None)
    if label is not None and values == list(map(str, range(len(values)))):
        return True
    counts = any(all(float(cell) == place for place, cell in enumerate(values, first)) for first in (0, 1))
    if label is not None or (len(values) > 1 and counts):
        raise ParameterError(
            f"the first row of {where} may be names of columns or values: {', '.join(names[:3])}; write a name that is "
            "no number over each column, or name that of the labels with --label-column (label_column=)"
        )
    return not numbers


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, or a word for a missing one."""
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() in MISSING - {""}
    return True


def find_roles(table: DataTable, reading: Reading) -> Roles:
    """What each of the columns is."""
    names, where = table.names, table.where
    if names is not None:
        check_names(names, where, range(len(names)))
    named = [place for place, name in enumerate(names or ()) if name.lower() in LABEL_NAMES]
    asked = reading.label_column
    if asked is not None:
        several = asked.split(",") if reading.targets and asked not in (names or ()) else [asked]
        places = [find_column(names, table.width, one, where) for one in several]
    elif len(named) > 1:
        both = " and ".join(repr(table.name(place)) for place in named)
        raise ParameterError(
            f"{where} has the columns {both}; name the one with the labels (--label-column, label_column=)"
        )
    else:
        declared = [place for place in range(table.width) if table.name(place) in table.class_names]
        places = named or (declared if len(declared) == 1 else [])
    ids = next((at for at, name in enumerate(names or ()) if name.lower() == ID_NAME and at not in places), None)
    features = tuple(place for place in range(table.width) if place not in (*places, ids))
    if not features:
        raise DataError("columns", f"{where} has no column of features besides labels and ids; expected at least 1")
    if reading.targets:
        return Roles(None, ids, features, tuple(dict.fromkeys(places)))
    return Roles(places[0] if places else None, ids, features)


def read_cells(table: DataTable, roles: Roles) -> Cells:
    """What the rows hold in the columns that have a role."""
    numbers: list[np.ndarray] = []
    labels, ids, texts = list[Any](), list[Any](), list[Any]()
    row = 0
    for columns in table.chunks:
        places = (*roles.features, *roles.targets)
        count = len(columns[0])
        part = np.empty((count, len(places)))
        for at, place in enumerate(places):
            part[:, at] = _numbers(columns[place], row, place, table)
        numbers.append(part)
        for place, cells in ((roles.label, labels), (roles.id, ids), (roles.text, texts)):
            if place is not None:
                cells += columns[place]
        row += count
    if not row:
        raise DataError("empty_dataset", f"{table.where} holds no rows; expected at least 1")
    return Cells(np.concatenate(numbers), labels, [str(one).strip() if table.lines else str(one) for one in ids], texts)


def answers_in(table: DataTable, roles: Roles, cells: Cells) -> dict[str, Any]:
    """What is right for each row, as keywords of `Reading.points`."""
    if roles.targets:
        several = len(roles.targets) > 1 and table.names is not None
        numbers = np.ascontiguousarray(cells.numbers[:, len(roles.features) :])
        names = tuple(map(table.name, roles.targets)) if several else None
        return {"targets": torch.from_numpy(numbers), "class_names": names}
    if roles.label is None:
        return {}
    labels, names = _classes(cells.labels, roles.label, table)
    return {"labels": labels, "class_names": names or table.class_names.get(table.name(roles.label))}


def table_points(table: DataTable, reading: Reading) -> ListedPoints:
    """The points that the rows of a table are."""
    roles = find_roles(table, reading)
    cells = read_cells(table, roles)
    answers = answers_in(table, roles, cells)
    inputs = torch.from_numpy(np.ascontiguousarray(cells.numbers[:, : len(roles.features)]))
    names = None if table.names is None else np.array([table.name(place) for place in roles.features])
    record = table.record | column_record(table, roles) | feature_record(names, f"the header of {table.where}", inputs)
    read = partial(array_chunks, inputs, bounds=reading.bounds)
    return reading.points(record, cells.ids or RowIds(len(inputs)), read, **answers)


def column_record(table: DataTable, roles: Roles) -> dict[str, Any]:
    """What a run records of the columns."""
    places = [place for place in (roles.text, *roles.answers, roles.id) if place is not None]
    return {
        "label_column": ",".join(map(table.name, roles.answers)) or None,
        "columns": list(map(table.name, places)),
    }


def _batches(file: Path) -> Iterator[pa.RecordBatch]:
    with open_parquet(file) as parquet:
        yield from parquet.batches(ROWS)


def _is_numeric(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean))


def _numbers(cells: Sequence[Any], first: int, place: int, table: DataTable) -> np.ndarray:
    """A column of some rows as numbers."""
    kind = None if table.schema is None else table.schema.field(place).type
    number: Callable[[Any], float] = _from_text if kind is None else float if _is_numeric(kind) else _refuse

    def parsed(cell: Any) -> float:
        try:
            return math.nan if cell is None else number(cell)
        except (ValueError, TypeError):
            return math.nan

    numbers = np.array(list(map(parsed, cells)), dtype=np.float64)
    if np.isnan(numbers).any():
        row = int(np.isnan(numbers).argmax())
        name = f"{table.place(first + row)}, column {table.name(place)!r:.60} of {table.where}"
        raise _bad_cell(name, cells[row])
    return numbers


def _from_text(cell: str) -> float:
    return math.nan if "_" in cell else float(cell)  # Python reads 1_000 as a number, a table does not


def _refuse(cell: Any) -> float:
    return math.nan


def _bad_cell(where: str, cell: Any) -> DataError:
    if cell is None or str(cell).strip().lower() in MISSING:
        return DataError("columns", f"{where} holds no value; fill it, or leave the row or the column out")
    return DataError(
        "columns",
        f"{where} holds {cell!r:.60}, which is no number; if the column holds the labels, name it with --label-column "
        "(label_column=); else write text as numbers first (such as one column of 0 and 1 for each value), or leave "
        "the column out",
    )


def _classes(cells: Sequence[Any], place: int, table: DataTable) -> tuple[tuple[int, ...], tuple[str, ...] | None]:
    """The class index of each row, and the names of the classes where labels are text: sorted, as Python sorts text."""
    labels, name = [_label(one) for one in cells], f"the label column {table.name(place)!r:.60} in {table.where}"
    texts, others = [], []
    for row, label in enumerate(labels):
        if label is None:
            raise DataError("labels", f"{table.place(row)} of {name} is empty; label all rows or none")
        if not isinstance(label, str | int | float):
            raise DataError("labels", f"{name} has cells such as {label!r:.60}; expected whole numbers or text")
        (texts if isinstance(label, str) else others).append(row)
    if texts and others:
        text, other = texts[0], others[0]
        raise DataError(
            "labels",
            f"{name} holds text and numbers: {labels[text]!r:.60} in {table.place(text)}, {labels[other]:g} in "
            f"{table.place(other)}; write all as one",
        )
    if texts:
        names = sorted(set(labels))
        index = {label: number for number, label in enumerate(names)}
        return tuple(index[label] for label in labels), tuple(names)
    odd = next((row for row, one in enumerate(labels) if one != math.floor(one) or abs(one) > LARGEST_LABEL), None)
    if odd is not None:
        raise no_index(f"{table.place(odd)} of {name} holds", labels[odd])
    return tuple(map(int, labels)), None


def _label(cell: Any) -> Any:
    """A label as text or as a finite number; None where there is none."""
    if isinstance(cell, str):
        text = cell.strip()
        try:
            number = math.inf if "_" in text else float(text)
        except ValueError:
            number = math.inf
        return (text or None) if math.isinf(number) else None if math.isnan(number) else number
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
