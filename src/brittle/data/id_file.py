"""A file of ids: one a line, or the first column of a table of points."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from brittle.data.files import path_text
from brittle.errors import DataError
from brittle.store.files.csv_text import text_of

MOST_BYTES = 1 << 28
"""Bytes of a file of ids at most: more than a hundred for each of two million points."""

COLUMN = "point"
"""What the first column of a table of points is called."""


def read_ids(path: Path) -> tuple[str, ...]:
    r"""The ids that a text file holds, in its order.

    One a line, whose end may be that of Windows; empty lines and a byte order mark are passed over. A file whose first
    line is the header of a table with several columns, of which the first is `point`, is read as CSV, as brittle writes
    it: the ids are that column.

    Raises:
        DataError: the file is missing, no regular file, too large, not UTF-8 text, no table of its header, or holds no
            id.
    """
    text = _text(path)
    first = text.partition("\n")[0].removesuffix("\r")
    ids = _column(path, text) if _is_header(first) else [line.removesuffix("\r") for line in text.split("\n")]
    found = tuple(own for own in ids if own.strip(" \t"))
    if not found:
        raise _problem(path, "holds no id")
    return found


def _text(path: Path) -> str:
    if not path.exists():
        raise DataError("no_such_path", f"{path_text(path)} does not exist")
    if not path.is_file():
        raise _problem(path, "is no regular file, and workers and runs that go on read it again")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError("unreadable", f"{path_text(path)} cannot be read: {error.strerror or error}") from error
    if len(content) > MOST_BYTES:
        raise _problem(path, f"has more than {MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _problem(path, f"is not UTF-8 text (byte {error.start})") from error
    if "\0" in text:
        raise _problem(path, "is not UTF-8 text (it holds zero bytes)")
    return text


def _is_header(line: str) -> bool:
    return line.startswith((f"{COLUMN},", f'"{COLUMN}",'))


def _column(path: Path, text: str) -> list[str]:
    """The first column of a table below its header.

    Raises:
        DataError: a row has another number of columns than the header.
    """
    try:
        header, *rows = csv.reader(StringIO(text, newline=""), strict=True)
    except csv.Error as error:
        raise _problem(path, f"begins as a table and is none ({error})") from error
    for number, row in enumerate(rows, 2):
        if row and len(row) != len(header):
            raise _problem(path, f"begins as a table of {len(header)} columns and has {len(row)} in row {number}")
    return [_cell(row[0]) for row in rows if row]


def _cell(cell: str) -> str:
    """The text that a cell stands for; a cell that brittle did not write stands for itself."""
    try:
        return text_of(cell)
    except UnicodeDecodeError:
        return cell


def _problem(path: Path, seen: str) -> DataError:
    return DataError("ids", f"{path_text(path)} {seen}; expected a text file of ids, one a line")
