"""Tables: which column holds what, and the points of their rows, features or images."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from brittle.data.arrays import array_chunks, feature_record
from brittle.data.arrow import LABEL_NAMES, Table, first_schema, is_csv, is_image, is_number, is_table, open_table
from brittle.data.folder import encoded_points
from brittle.data.labels import check_labels
from brittle.data.points import ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import BrittleError, DataError, ParameterError, listed

IMAGE_COLUMNS = ("image", "img")
"""Preferred where several columns hold images."""

ID_NAME = "id"
"""A column that is called so holds the ids; case does not matter."""

INDEX_NAME = re.compile(r"(unnamed: \d+|__index_level_\d+__)?", re.IGNORECASE)
"""What pandas calls the column of its index."""

SHOWN = 8
"""Columns that a message names, and images that are looked at to see whether there are bytes."""


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are.

    Attributes:
        answers: that of the labels, or those of what is right for a row, where it is no class; perhaps none.
        id: that of the ids, or None.
        others: all others, in their order.
    """

    answers: tuple[str, ...]
    id: str | None
    others: tuple[str, ...]

    @property
    def record(self) -> dict[str, Any]:
        """What a run records of them."""
        columns = [*self.answers, *([] if self.id is None else [self.id])]
        return {"label_column": ",".join(self.answers) or None, "columns": columns}


def is_feature_table(path: Path) -> bool:
    """Whether `path` is a table without a column of images."""
    return is_csv(path) or (is_table(path) and not _has_images(path))


def is_image_table(path: Path) -> bool:
    """Whether `path` is a table with a column of images."""
    return is_table(path) and not is_feature_table(path)


def _has_images(path: Path) -> bool:
    try:
        return any(is_image(one.type) for one in first_schema(path))
    except BrittleError:
        return False  # the reader says what is wrong


def read_features(path: Path, reading: Reading) -> ListedPoints:
    """The rows of a table of numbers, booleans among them; labels are whole numbers or text."""
    table = open_table(path, reading)
    roles = find_roles(table, reading)
    for name in roles.others:
        if INDEX_NAME.fullmatch(name):
            raise DataError(
                "columns",
                f"a column of {table.where} is called {name!r}, as the index of pandas; write the table without it "
                "(index=False), or give it a name",
            )
    if not roles.others:
        raise DataError(
            "columns", f"{table.where} has no column of features besides labels and ids; expected at least 1"
        )
    cells = read_columns(table, table.schema.names)
    inputs = torch.from_numpy(np.stack([_numbers(cells, name, table.where) for name in roles.others], axis=1))
    names = np.array(roles.others) if table.header else None
    record = table.record | roles.record | feature_record(names, f"the header of {table.where}", inputs)
    read = partial(array_chunks, inputs, bounds=reading.bounds)
    return reading.points(record, ids_in(cells, roles, table), read, **answers_in(cells, roles, table, reading))


def read_images(path: Path, reading: Reading) -> ListedPoints:
    """The rows of a table of images: a column of type struct with `bytes`, and perhaps `path`."""
    table = open_table(path, reading)
    where, images = table.where, [one.name for one in table.schema if is_image(one.type)]
    image = next((name for name in IMAGE_COLUMNS if name in images), images[0] if len(images) == 1 else None)
    if image is None:
        raise DataError(
            "columns",
            f"{where} has {len(images)} columns of type struct<bytes: binary, ...>, the form of images; give it one, "
            f"or call one of them {' or '.join(IMAGE_COLUMNS)}. Its columns: {listed(table.schema.names, SHOWN)}",
        )
    roles = find_roles(table, reading)
    needed = [*roles.answers, *([] if roles.id is None else [roles.id])]
    cells = read_columns(table, needed) if needed else pa.table({})
    paths = [None] * table.rows
    if any(field.name == "path" for field in table.schema.field(image).type):
        batches = (batch.column(image) for _, batch in table.batches([f"{image}.path"]))
        paths = [path for column in batches for path in column.field("path").to_pylist()]
    files = partial(_encoded, table, image)
    if any(paths[:SHOWN]):
        with closing(files(0)) as streams:
            if not any(stream.read(1) for stream in islice(streams, SHOWN)):
                named = next(name for name in paths if name)
                raise DataError(
                    "corrupt",
                    f"{where} holds the paths of images, such as {named!r:.80}, and not their bytes; give the folder "
                    "that these images are in, or write the data with the bytes in them, as save_to_disk of datasets "
                    "does",
                )
    record = table.record | roles.record
    record["columns"] = [image, *record["columns"]]
    return encoded_points(
        files,
        [name or f"row {row}" for row, name in enumerate(paths)],
        ids_in(cells, roles, table),
        reading,
        record,
        named=any(paths),
        **answers_in(cells, roles, table, reading),
    )


def _encoded(table: Table, image: str, start: int) -> Generator[BinaryIO, None, None]:
    """The encoded images from row `start`; an empty file where there are no bytes."""
    for first, batch in table.batches([f"{image}.bytes"], start):
        for one in batch.column(image)[max(0, start - first) :]:
            yield BytesIO(one["bytes"].as_py() or b"" if one.is_valid else b"")


def find_roles(table: Table, reading: Reading) -> Roles:
    """What each of the columns is."""
    names, where, asked = table.schema.names, table.where, reading.label_column
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise DataError("columns", f"{where} has two columns called {twice!r:.60}; give each a name of its own")
    if asked is not None:
        several = asked.split(",") if reading.targets and asked not in names else [asked]
        answers = [find_column(table, one) for one in several]
    else:
        called = [name for name in names if name.lower() in LABEL_NAMES and table.header]
        answers = called or list(table.class_names)
        if len(answers) > 1:
            raise ParameterError(
                f"{where} has the columns {' and '.join(map(repr, answers))}; name the one with the labels "
                "(--label-column, label_column=)"
            )
    ids = [name for name in names if name.lower() == ID_NAME and name not in answers]
    others = tuple(name for name in names if name not in (*answers, *ids[:1]))
    return Roles(tuple(dict.fromkeys(answers)), ids[0] if ids else None, others)


def find_column(table: Table, asked: str, option: str = "--label-column (label_column=)") -> str:
    """The column that is called so, or that stands at this place, the last one being -1; `option` asked for it."""
    names = table.schema.names
    width = len(names)
    counted = re.fullmatch(r"-?\d{1,6}", asked) is not None and -width <= int(asked) < width
    if asked in names and counted and names[int(asked)] != asked:
        raise ParameterError(
            f"{asked!r} is what column {names.index(asked)} of {table.where} is called, and the place of "
            f"{names[int(asked)]!r:.60}; count places from the other end"
        )
    if asked in names or counted:
        return asked if asked in names else names[int(asked)]
    there = f"it has {listed(names, SHOWN)}" if table.header else f"it has {width} without a header"
    raise ParameterError(
        f"{table.where} has no column {asked!r:.60}; {there}: name one with {option}, or give its place; several, with "
        "commas between them, are for --decision multilabel or within:T (decision=)"
    )


def read_columns(table: Table, columns: Sequence[str]) -> pa.Table:
    """Columns of a table that has rows."""
    if not table.rows:
        raise DataError("empty_dataset", f"{table.where} holds no rows; expected at least 1")
    return table.read(columns)


def ids_in(cells: pa.Table, roles: Roles, table: Table) -> Sequence[str] | RowIds:
    """The ids of the rows: those of their column, or their numbers."""
    if roles.id is None:
        return RowIds(table.rows)
    ids = cells[roles.id].to_pylist()
    if None in ids:
        raise DataError(
            "ids", f"{roles.id} in {table.where} is empty in row {ids.index(None)}; give all rows an id or none"
        )
    return [str(own).strip() for own in ids]


def answers_in(cells: pa.Table, roles: Roles, table: Table, reading: Reading) -> dict[str, Any]:
    """What is right for each row, as keywords of `Reading.points`."""
    if not roles.answers:
        return {}
    if reading.targets:
        numbers = np.stack([_numbers(cells, name, table.where) for name in roles.answers], axis=1)
        names = roles.answers if len(roles.answers) > 1 and table.header else None
        return {"targets": torch.from_numpy(numbers), "class_names": names}
    (label,) = roles.answers
    labels, names = _classes(cells[label].to_pylist(), f"the label column {label!r:.60} in {table.where}")
    return {"labels": labels, "class_names": names or table.class_names.get(label)}


def _classes(cells: Sequence[Any], where: str) -> tuple[tuple[int, ...], tuple[str, ...] | None]:
    """The class index of each row, and the names of the classes where labels are text: sorted, as Python sorts text."""
    cells = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
    odd = next((row for row, cell in enumerate(cells) if not isinstance(cell, str | int | float) or cell == ""), None)
    if odd is not None:
        found = "is empty" if cells[odd] in (None, "") else f"holds {cells[odd]!r:.60}"
        raise DataError("labels", f"row {odd} of {where} {found}; label all rows, with whole numbers or text, or none")
    texts = [cell for cell in cells if isinstance(cell, str) and not is_number(cell)]
    if not texts:
        return check_labels(np.array([float(cell) for cell in cells]), where, len(cells)), None
    if len(texts) < len(cells):
        number = next(cell for cell in cells if not isinstance(cell, str) or is_number(cell))
        raise DataError("labels", f"{where} holds text and numbers: {texts[0]!r:.60} and {number}; write all as one")
    names = sorted(set(texts))
    index = {label: number for number, label in enumerate(names)}
    return tuple(index[label] for label in texts), tuple(names)


def _numbers(cells: pa.Table, name: str, where: str) -> np.ndarray:
    """A column as numbers, `[N]`, float64."""
    column = cells[name]
    try:
        numbers = _as_numbers(column)
    except pa.ArrowException:
        row = next(row for row in range(len(column)) if not _is_numeric(column[row : row + 1]))
    else:
        if not np.isnan(numbers).any():
            return numbers
        row = int(np.isnan(numbers).argmax())
    cell, place = column[row].as_py(), f"row {row}, column {name!r:.60} of {where}"
    if cell is None or cell != cell or (isinstance(cell, str) and (not cell.strip() or is_number(cell))):
        raise DataError("columns", f"{place} holds no value; fill it, or leave the row or the column out")
    raise DataError(
        "columns",
        f"{place} holds {cell!r:.60}, which is no number; if the column holds the labels, name it with --label-column "
        "(label_column=); else write text as numbers first (such as one column of 0 and 1 for each value), or leave "
        "the column out",
    )


def _as_numbers(column: pa.ChunkedArray) -> np.ndarray:
    cells = pc.call_function("utf8_trim_whitespace", [column]) if is_text(column.type) else column
    return cells.cast(pa.float64(), safe=False).to_numpy()


def _is_numeric(column: pa.ChunkedArray) -> bool:
    """Whether all cells are numbers, or there are none."""
    try:
        _as_numbers(column)
    except pa.ArrowException:
        return False
    return True


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is that of text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)
