"""Tables of features in Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from brittle.data.csv_file import is_csv, read_csv
from brittle.data.files import file_digest, files_digest, path_text
from brittle.data.listed import ListedPoints
from brittle.data.options import ReadingOptions
from brittle.data.parquet import ROWS, class_names_of, is_image_column, is_parquet, open_parquet, split_files
from brittle.data.tabular import ID_NAME, LABEL_NAMES, Cells, Roles, bad_cell, find_roles, table_points
from brittle.errors import BrittleError, DataError, ParameterError


def is_feature_table(path: Path) -> bool:
    """Whether `path` is a text file of a table, or Parquet with a column of numbers and none of images."""
    if is_csv(path):
        return True
    if not is_parquet(path):
        return False
    file = path if path.is_file() else min(one for one in path.glob("*.parquet") if one.is_file())
    try:
        with open_parquet(file) as parquet:
            schema = parquet.schema
    except BrittleError:
        return False  # the reader of image Parquet says what is wrong
    return has_features(schema)


def has_features(schema: pa.Schema) -> bool:
    """Whether there is a column of numbers besides labels and ids, and none of images."""
    apart = {ID_NAME, *LABEL_NAMES}
    numbers = [one.name for one in schema if _is_number(one.type) and one.name.lower() not in apart]
    return bool(numbers) and not any(is_image_column(one.type) for one in schema)


def read_features(path: Path, options: ReadingOptions) -> ListedPoints:
    """The rows of a table, as `brittle.data.csv_file.read_csv` reads text, or in Parquet: a file, or the files of one
    split in a folder. Numbers and booleans are features; labels are whole numbers or text.

    Raises:
        DataError: the file is no such table, or a cell is missing or no number; row and column are named.
        ParameterError: there is no such column of labels, or several may be it.
    """
    if is_csv(path):
        return read_csv(path, options)
    if options.header is not None:
        raise ParameterError(f"{path_text(path)} names its columns itself; leave out --header (header=)")
    files, split = split_files(path, options.split)
    where = path_text(path)
    schema = parquet_schema(files)
    digest = file_digest(path) if path.is_file() else files_digest(path, files)
    named = [path_text(one.name) for one in files]
    provenance = {"format": "table", "path": where, "split": split, "sha256": digest, "files": named}
    return feature_points(schema, parquet_batches(files), where, options, provenance)


def feature_points(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    where: str,
    options: ReadingOptions,
    provenance: dict[str, Any],
) -> ListedPoints:
    """The rows of a table of Arrow.

    Args:
        schema: its columns; a `ClassLabel` of Hugging Face names the classes.
        batches: its rows, in order.
        where: what to call it.
        options: how it is read.
        provenance: where it comes from.

    Raises:
        As `read_features`.
    """
    class_names = class_names_of(schema, where)
    asked = options.label_column
    if asked is None and len(class_names) == 1 and not any(name.lower() in LABEL_NAMES for name in schema.names):
        (asked,) = class_names
    roles = find_roles(schema.names, len(schema.names), replace(options, label_column=asked), where)
    points = table_points(parquet_cells(batches, roles, where), roles, where, options, provenance)
    names = None if roles.label is None else class_names.get(schema.names[roles.label])
    return points if names is None or points.class_names is not None else replace(points, class_names=names)


def parquet_schema(files: Sequence[Path]) -> pa.Schema:
    """The columns of the first file, which all others must have too.

    Raises:
        DataError: one has others.
    """
    found = []
    for file in files:
        with open_parquet(file) as parquet:
            found.append(parquet.schema)
        if not found[-1].equals(found[0]):
            raise DataError(
                "columns",
                f"{path_text(file)} has the columns {found[-1].names}, {path_text(files[0])} has {found[0].names}; the "
                "files of a split must agree in names and types",
            )
    return found[0]


def parquet_batches(files: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """The rows of the files, in order."""
    for file in files:
        with open_parquet(file) as parquet:
            yield from parquet.batches(ROWS)


def parquet_cells(batches: Iterable[pa.RecordBatch], roles: Roles, where: str) -> Cells:
    """What the rows hold.

    Raises:
        DataError: a feature or a target is no number, or the labels are of another type.
    """
    parts: list[np.ndarray] = []
    labels: list[Any] = []
    ids: list[str] = []
    row = 0
    for batch in batches:
        columns = [_numbers(batch.column(at), row, roles.name(at), where) for at in roles.numbers]
        parts.append(np.stack(columns, axis=1) if columns else np.empty((len(batch), 0)))
        if roles.label is not None:
            labels += _labels(batch.column(roles.label), roles.name(roles.label), where)
        if roles.id is not None:
            ids += map(str, batch.column(roles.id).to_pylist())
        row += len(batch)
    features = np.concatenate(parts) if parts else np.empty((0, len(roles.numbers)))
    found = None if roles.label is None else labels
    return Cells(features, found, None if roles.id is None else ids, lambda row: f"row {row}")


def _numbers(column: pa.Array, start: int, name: str, where: str) -> np.ndarray:
    """A column of features, `[B]`, float64; NaN where there is no value."""
    if _is_number(column.type):
        values = column.to_pylist()
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    values = column.to_pylist()
    row = next((at for at, value in enumerate(values) if value is not None), 0)
    raise bad_cell(f"row {start + row}", name, where, values[row] if values else None)


def _labels(column: pa.Array, name: str, where: str) -> list[Any]:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_boolean(kind):
        return [None if value is None else int(value) for value in column.to_pylist()]
    if not (_is_number(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(
            "labels", f"the label column {name!r:.60} in {where} has type {kind}; expected whole numbers or text"
        )
    return column.to_pylist()


def _is_number(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean))
