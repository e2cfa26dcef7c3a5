"""Tables: which column holds what, and the points of their rows, features or images."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from brittle.data.arrays import bytes_of, feature_record, read_arrays
from brittle.data.arrow import LABEL_NAMES, ArrowFile, EncodedColumn, Sheet, is_csv, is_image, is_number, open_table
from brittle.data.folder import encoded_points
from brittle.data.labels import answers_of, check_labels
from brittle.data.points import ListedPoints, RowIds
from brittle.data.reading import IMAGE_OPTIONS, Reading
from brittle.errors import DataError, ParameterError, first_line, listed
from brittle.model.arrays import Levels
from brittle.model.inputs import ExtraInputs
from brittle.store.index import describe_index

INDEX_NAME = re.compile(r"(unnamed: \d+|__index_level_\d+__)?", re.IGNORECASE)
"""What pandas calls the column of its index."""

BOOLEAN_TEXTS = {word: float(word.lower() == "true") for word in ("True", "TRUE", "true", "False", "FALSE", "false")}
BOOLEANS = frozenset(BOOLEAN_TEXTS)
"""What pandas reads as booleans in a column of a text file, and its numbers."""

MISSING = frozenset(
    (
        *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
        *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)
"""What pandas reads as no value in a text file."""

MOST_LEVELS = 10_000
"""Different texts that a column of categories may hold."""


class Roles(NamedTuple):
    """The columns of a table: of labels, or of what is right for a row where it is no class; of ids; all others."""

    answers: tuple[str, ...]
    id: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """Those of labels and ids."""
        return [*self.answers, *self.id]

    @property
    def record(self) -> dict[str, Any]:
        """What a run records of them."""
        return {"label_column": ",".join(self.answers) or None, "columns": self.columns}


def read_table(path: Path, reading: Reading) -> ListedPoints:
    """The rows of a table: images where it has a column of them, else numbers; labels are whole numbers or text."""
    table = open_table(path, reading)
    images = [one.name for one in table.schema if is_image(one.type)]
    return _images(table, images, reading) if images else _features(table, reading)


def read_frame(frame: Any, y: Any, reading: Reading) -> ListedPoints:
    """The rows of a frame of pandas, by the rules of tables in files; all columns are features where `y` is given.

    Without a column of ids the ids are the index as text, where no two are alike. The record describes the index, so
    that `Table.frame` has it again; where it is not the ids, it is the names of the points.
    """
    if y is not None and reading.label_column is not None:
        raise ParameterError(f"y and label_column={reading.label_column!r:.60} both say what is right; give one")
    try:
        cells = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(
            "columns", f"the frame has a column of mixed values, or two of one name: {first_line(error)}"
        ) from error
    file = ArrowFile(Path("frame"), cells.schema, (len(cells),), cells.select)
    points = _features(Sheet((file,), "the frame", reading.record(None, "", format="memory")), reading, y)
    labels = tuple(map(str, frame.index))
    named = tuple(label.strip() for label in labels)
    if isinstance(points.ids, RowIds) and len(set(named)) == len(named):
        points = replace(points, ids=named)
    index = describe_index(frame.index, pa.table({"point": points.ids[:], "row": range(len(frame)), "name": labels}))
    if index["column"] == "name":
        points = replace(points, names=labels)
    known = {name: points.source.get(name) for name in ("feature_names", "categories")}
    digest = hashlib.sha256(repr((known, tuple(points.ids), points.labels)).encode())
    for part in (points.read(0, len(points)).inputs, points.targets):
        digest.update(b"" if part is None else bytes_of(part))
    return replace(points, source=points.source | {"sha256": digest.hexdigest(), "index": index})


def _features(table: Sheet, reading: Reading, y: Any = None) -> ListedPoints:
    """The rows of a table of numbers, booleans among them, and with `reading.levels` of categories."""
    if wrong := sorted(reading.given & IMAGE_OPTIONS):
        raise ParameterError(f"{wrong[0]} is for encoded images, and {table.where} has no column of them")
    roles = find_roles(table, reading) if y is None else Roles((), (), tuple(table.schema.names))
    odd = next((name for name in roles.others if INDEX_NAME.fullmatch(name)), None)
    if odd is not None or not roles.others:
        found = "no column of features" if odd is None else f"a column called {odd!r}, as the index of pandas"
        raise DataError("columns", f"{table.where} has {found}; write it with names of features and index=False")
    cells = table.read(table.schema.names)
    typed = not is_csv(table.files[0].path)
    coded = {
        name: found
        for name in roles.others
        if reading.levels and (found := _levels(cells[name], typed, f"column {name!r:.60} of {table.where}"))
    }
    columns = [coded[name][0] if name in coded else _numbers(cells, name, table.where) for name in roles.others]
    inputs, extra = torch.from_numpy(np.stack(columns, axis=1)), None
    record = table.record | roles.record | feature_record(np.array(roles.others), table.where, inputs)
    if coded:
        record["categories"] = {name: levels._asdict() for name, (_, levels) in coded.items()}
        varies = torch.tensor([name not in coded for name in roles.others])
        if not bool(varies.any()):
            raise DataError("columns", f"all columns of {table.where} are categories, which noise never changes")
        extra = ExtraInputs(varies=varies.expand(inputs.shape), inputs=inputs)
    read = partial(read_arrays, inputs, reading.bounds, extra)
    answers = answers_in(cells, roles, table, reading)
    answers |= answers_of(y, "y", table.rows, reading.targets)
    return reading.points(record, ids_in(cells, roles, table), read, **answers)


def _levels(column: pa.ChunkedArray, typed: bool, where: str) -> tuple[np.ndarray, Levels] | None:
    """The codes of a column of categories, `[N]`, float64, and what they stand for; None of any other column.

    Text is one where no cell is empty, and in a table whose columns are not `typed`, as of CSV, where none is a number
    and not all are booleans, which pandas reads as such.
    """
    if pa.types.is_dictionary(column.type):
        whole = column.combine_chunks()
        levels, ordered = whole.dictionary.to_pylist(), column.type.ordered
        fine = not whole.null_count and all(isinstance(one, str | int | float) for one in levels)
        return (whole.indices.to_numpy().astype(float), Levels(levels, True, ordered)) if fine else None
    cells: list[Any] = column.to_pylist() if is_text(column.type) else [None]
    if any(cell is None or not cell.strip() or (is_number(cell) and not typed) for cell in cells):
        return None
    if not typed and BOOLEANS.issuperset(cells):
        return None
    if not typed and (missing := next((cell for cell in cells if cell in MISSING), None)) is not None:
        raise DataError(
            "columns",
            f"{where} holds {missing!r}, which pandas reads as no value; fill it, or give Parquet or a frame",
        )
    levels = sorted(set(cells))
    if len(levels) > MOST_LEVELS:  # as numbers it would be another column
        raise DataError(
            "columns", f"{where} holds {len(levels):,} different texts, {MOST_LEVELS:,} at most; leave it out"
        )
    places = {level: place for place, level in enumerate(levels)}
    return np.array([places[cell] for cell in cells], float), Levels(levels, False)


def _images(table: Sheet, images: list[str], reading: Reading) -> ListedPoints:
    """The rows of a table of images: a column of type struct with `bytes`, and perhaps `path`."""
    image = next((name for name in ("image", "img") if name in images), images[0] if len(images) == 1 else None)
    if image is None:
        raise DataError("columns", f"{table.where} has {len(images)} columns of images; call one of them image or img")
    roles = find_roles(table, reading)
    cells = table.read(roles.columns) if roles.columns else pa.table({})
    paths = [None] * table.rows
    if any(field.name == "path" for field in table.schema.field(image).type):
        paths = table.read([f"{image}.path"]).column(0).to_pylist()
    encoded, named = EncodedColumn(table, image), next((name for name in paths if name), None)
    if named is not None and not any(encoded(row).read(1) for row in range(min(8, table.rows))):
        raise DataError(
            "corrupt",
            f"{table.where} holds the paths of images, such as {named!r:.80}, and not their bytes; give the "
            "folder that these images are in, or write the data with their bytes, as to_parquet of datasets does",
        )
    return encoded_points(
        encoded,
        [name or f"row {row}" for row, name in enumerate(paths)],
        ids_in(cells, roles, table),
        reading,
        table.record | roles.record | {"columns": [image, *roles.columns]},
        named=named is not None,
        **answers_in(cells, roles, table, reading),
    )


def find_roles(table: Sheet, reading: Reading) -> Roles:
    """What each of the columns is."""
    names, where, asked = table.schema.names, table.where, reading.label_column
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise DataError("columns", f"{where} has two columns called {twice!r:.60}; give each a name of its own")
    if asked is not None:
        several = asked.split(",") if reading.targets and asked not in names else [asked]
        answers = [find_column(table, one) for one in several]
    else:
        called = [name for name in names if name.lower() in LABEL_NAMES]
        answers = called or list(table.class_names)
        if len(answers) > 1:
            raise ParameterError(
                f"{where} has the columns {' and '.join(map(repr, answers))}; name the one with the labels "
                "(--label-column, label_column=)"
            )
    ids = [name for name in names if name.lower() == "id" and name not in answers][:1]
    others = [name for name in names if name not in (*answers, *ids)]
    return Roles(tuple(dict.fromkeys(answers)), tuple(ids), tuple(others))


def find_column(table: Sheet, asked: str, option: str = "--label-column (label_column=)") -> str:
    """The column that is called so; `option` asked for it."""
    names = table.schema.names
    if asked in names:
        return asked
    raise ParameterError(
        f"{table.where} has no column {asked!r:.60}; it has {listed(names)}: name one with {option}; several, "
        "with commas between them, are for --decision multilabel or within:T (decision=)"
    )


def ids_in(cells: pa.Table, roles: Roles, table: Sheet) -> Sequence[str]:
    """The ids of the rows: those of their column, or their numbers."""
    if not roles.id:
        return RowIds(table.rows)
    ids = cells[roles.id[0]].to_pylist()
    if None in ids:
        raise DataError(
            "ids", f"{roles.id[0]} in {table.where} is empty in row {ids.index(None)}; give all rows an id or none"
        )
    return tuple(str(own).strip() for own in ids)


def answers_in(cells: pa.Table, roles: Roles, table: Sheet, reading: Reading) -> dict[str, Any]:
    """What is right for each row, as keywords of `Reading.points`."""
    if not roles.answers:
        return {}
    if reading.targets:
        numbers = np.stack([_numbers(cells, name, table.where) for name in roles.answers], axis=1)
        names = roles.answers if len(roles.answers) > 1 else None
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
    return tuple(map({name: at for at, name in enumerate(names)}.__getitem__, texts)), tuple(names)


def _numbers(cells: pa.Table, name: str, where: str) -> np.ndarray:
    """A column as numbers, `[N]`, float64."""
    column = cells[name]
    if is_text(column.type) and BOOLEANS.issuperset(column.unique().to_pylist()):
        return np.array([BOOLEAN_TEXTS[one] for one in column.to_pylist()])
    numbers = _cast(column)
    if numbers is not None and not np.isnan(numbers).any():
        return numbers
    odd = (row for row in range(len(column)) if (one := _cast(column[row : row + 1])) is None or np.isnan(one[0]))
    row = next(odd)
    cell, place = column[row].as_py(), f"row {row}, column {name!r:.60} of {where}"
    if cell is None or cell != cell or (isinstance(cell, str) and (not cell.strip() or is_number(cell))):
        raise DataError("columns", f"{place} holds no value; fill it, or leave the row or the column out")
    raise DataError(
        "columns",
        f"{place} holds {cell!r:.60}, which is no number; if the column holds the labels, name it with --label-column "
        "(label_column=); else write text as numbers first (such as one column of 0 and 1 for each value), or leave "
        "the column out",
    )


def _cast(column: pa.ChunkedArray) -> np.ndarray | None:
    """Cells as numbers, `[N]`, NaN where there is none; None where one is something else."""
    cells = pc.call_function("utf8_trim_whitespace", [column]) if is_text(column.type) else column
    try:
        return cells.cast(pa.float64(), safe=False).to_numpy()
    except pa.ArrowException:
        return None


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is that of text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)
