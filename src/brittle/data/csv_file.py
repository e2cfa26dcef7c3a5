"""Tables of features in text files: comma-, semicolon- or tab-separated."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from brittle.data.files import file_digest, path_text
from brittle.data.listed import ListedPoints
from brittle.data.options import ReadingOptions
from brittle.data.tabular import LABEL_NAMES, MISSING, Cells, Roles, bad_cell, find_roles, table_points
from brittle.errors import DataError, ParameterError

SUFFIXES = (".csv", ".tsv")
"""What such files end in."""

Line = tuple[int, list[str]]
"""The number of a line of the file, from 1 on, and the cells of the row that ends there."""


def is_csv(path: Path) -> bool:
    """Whether `path` is such a file."""
    return path.is_file() and path.suffix.lower() in SUFFIXES


def read_csv(path: Path, options: ReadingOptions) -> ListedPoints:
    """The rows of a table in UTF-8; cells are separated by commas, by semicolons where the first line has no comma, and
    in a `.tsv` file by tabs. Empty lines are left out.

    The first row names the columns where it says `options.label_column`, or one of `LABEL_NAMES` beside no numbers but
    0, 1, 2, ..., or where none of its cells is a number; `options.header` says it outright, and must where one of
    `LABEL_NAMES` stands beside other numbers, or where the numbers count from 0 or 1.

    Raises:
        DataError: the file is no such table, or a cell is missing or no number; row, line and column are named.
        ParameterError: there is no such column of labels, or several may be it.
    """
    where = path_text(path)
    if options.split is not None:
        raise DataError("split", f"{where} is one table and has no splits; leave out --split (split=)")
    lines = _lines(path, where)
    first = next(lines, None)
    if first is None:
        raise DataError("empty_dataset", f"{where} holds no rows; expected at least 1")
    named = _is_header(first[1], options, where)
    names = [cell.strip() for cell in first[1]] if named else None
    roles = find_roles(names, len(first[1]), options, where)
    cells = row_cells(lines if named else _with_first(first, lines), roles, len(first[1]), where)
    return table_points(cells, roles, where, options, {"format": "table", "path": where, "sha256": file_digest(path)})


def csv_rows(path: Path, options: ReadingOptions, where: str) -> tuple[list[str] | None, list[Line]]:
    """The names of the columns, or None, and all rows after them.

    Raises:
        DataError: the file is no such table.
        ParameterError: it cannot be told whether the first row names the columns.
    """
    if options.split is not None:
        raise DataError("split", f"{where} is one table and has no splits; leave out --split (split=)")
    rows = list(_lines(path, where))
    named = bool(rows) and _is_header(rows[0][1], options, where)
    return ([cell.strip() for cell in rows[0][1]], rows[1:]) if named else (None, rows)


def _lines(path: Path, where: str) -> Iterator[Line]:
    """The rows of the file that hold anything."""
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


def _with_first(first: Line, rest: Iterator[Line]) -> Iterator[Line]:
    yield first
    yield from rest


def _is_header(row: Sequence[str], options: ReadingOptions, where: str) -> bool:
    if options.header is not None:
        return options.header
    names = [cell.strip() for cell in row]
    asked = (options.label_column, options.text_column)
    if any(name in names and not is_number(name) for name in asked if name is not None):
        return True
    numbers = [name for name in names if is_number(name)]
    values = [name for name in numbers if name.lower() not in MISSING]
    label = next((name for name in names if name.lower() in LABEL_NAMES), None)
    if label is not None and values == [str(place) for place in range(len(values))]:
        return True
    if label is not None:
        raise _unclear(f"{where} holds {label!r} beside {values[0]!r:.60}")
    if len(values) > 1 and _counts(values):
        raise _unclear(f"{where} begins with {', '.join(names[:3])}")
    return not numbers


def _counts(cells: Sequence[str]) -> bool:
    """Whether numbers count from 0 or from 1, as names of columns that nobody gave do."""
    return any(all(float(cell) == place for place, cell in enumerate(cells, first)) for first in (0, 1))


def _unclear(seen: str) -> ParameterError:
    return ParameterError(
        f"the first row of {seen}, which may be names of columns or values; say --header yes or --header no "
        "(header=True, header=False)",
    )


def is_number(cell: str) -> bool:
    """Whether a cell holds a number, or a word for a missing one."""
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() in MISSING - {""}
    return True


def row_cells(lines: Iterator[Line], roles: Roles, width: int, where: str) -> Cells:
    """What the rows hold, all of which must have `width` cells; only features and targets are numbers yet."""
    numbers, ends = array("d"), array("q")
    labels: list[str] = []
    ids: list[str] = []

    def place(row: int) -> str:
        return f"row {row} (line {ends[row]})"

    for row, (end, cells) in enumerate(lines):
        ends.append(end)
        if len(cells) != width:
            raise DataError(
                "columns",
                f"{place(row)} of {where} has {len(cells)} cells and the first row {width}; mend the row",
            )
        numbers.extend(_numbers([cells[at] for at in roles.numbers], place(row), roles, where))
        if roles.label is not None:
            labels.append(cells[roles.label])
        if roles.id is not None:
            ids.append(cells[roles.id].strip())
    features = np.array(numbers).reshape(len(ends), len(roles.numbers))
    return Cells(features, None if roles.label is None else labels, None if roles.id is None else ids, place)


def _numbers(cells: Sequence[str], place: str, roles: Roles, where: str) -> list[float]:
    """The features of a row; an error names the first cell that is no number."""
    try:
        return list(map(_feature, cells))
    except ValueError:
        odd = next(at for at, cell in enumerate(cells) if not _is_feature(cell))
        raise bad_cell(place, roles.name(roles.numbers[odd]), where, cells[odd]) from None


def _feature(cell: str) -> float:
    if "_" in cell:
        raise ValueError(f"Python reads {cell!r} as a number, a table does not")
    return float(cell)


def _is_feature(cell: str) -> bool:
    try:
        _feature(cell)
    except ValueError:
        return False
    return True
