"""Images in tables of Arrow: in Parquet files, as Hugging Face writes them, and what all such tables have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from brittle.data.encoded import encoded_points
from brittle.data.files import files_digest, path_text, split_files
from brittle.data.labels import check_labels, check_names, find_column
from brittle.data.points import ListedPoints, RowIds
from brittle.data.reading import Reading
from brittle.errors import DataError, ParameterError, listed
from brittle.store.plain_parquet import ERRORS, PlainFile, opened, reason

IMAGE_COLUMNS = ("image", "img")
"""Preferred where several columns hold images."""

PATH_COLUMNS = (*IMAGE_COLUMNS, "path", "file", "file_name", "image_path", "filepath")
"""Columns of text under these names are taken for the paths of images."""

LABEL_COLUMNS, ID_COLUMN = ("label", "labels"), "id"

FIRST = 8
"""Images that are looked at to see whether there are bytes."""

IMAGES, ROWS = 1, 1 << 8
"""Encoded images, and rows of the other columns, that are unpacked at a time."""

NAME = re.compile(r"(?P<split>.*?)(?:(?:^|-)(?P<shard>\d{4,})(?:-of-(?P<shards>\d+))?)?\.parquet")

Batches = Callable[[list[str], int], Iterator[tuple[int, pa.RecordBatch]]]
"""Called with columns and a row, gives batches of these columns, each with its first row, from one that holds the row
or comes before it."""


@dataclass(frozen=True)
class ImageColumns:
    """The columns of a table of images.

    Attributes:
        image: struct with `bytes`.
        has_paths: whether it has a text field `path`, too.
        label: class indices, or None.
        id: ids, or None.
        class_names: from the Hugging Face metadata, or None.
    """

    image: str
    has_paths: bool
    label: str | None
    id: str | None
    class_names: tuple[str, ...] | None


def is_parquet(path: Path) -> bool:
    """Whether `path` is a Parquet file or a folder of them."""
    return path.suffix == ".parquet" if path.is_file() else any(file.is_file() for file in path.glob("*.parquet"))


def read_parquet(path: Path, reading: Reading) -> ListedPoints:
    """Points in a Parquet file, or in the files of one split in a folder (`test-00000-of-00002.parquet`).

    The image column is the one of type struct with `bytes`; labels are the column that is asked for, else `label` or
    `labels`, else the only ClassLabel feature; ids are the column `id` or the row numbers.
    """
    files, split = parquet_files(path, reading.split)
    schemas = [_schema(file) for file in files]
    columns = [
        columns_of(schema, path_text(file), reading.label_column) for file, schema in zip(files, schemas, strict=True)
    ]
    for file, own in zip(files, columns, strict=True):
        if own != columns[0]:
            raise DataError(
                "columns",
                f"{path_text(file)} has {own}, {path_text(files[0])} has {columns[0]}; the files of a split must agree",
            )
    found = {"split": split, "files": [path_text(one.name) for one in files]}
    record = reading.record(path, files_digest(path, files), **found)
    return image_points(partial(_batches, files), _row_count(files), columns[0], reading, record)


def image_points(
    batches: Batches, count: int, columns: ImageColumns, reading: Reading, record: dict[str, Any]
) -> ListedPoints:
    """The points of a table of images with so many rows."""
    where, count = record["path"], min(count, reading.limit or count)
    if not count:
        raise DataError("empty_dataset", f"{where} holds no rows; expected at least 1")
    path = f"{columns.image}.path" if columns.has_paths else None
    wanted = [one for one in (columns.label, columns.id, path) if one]
    values = dict[str, list[Any]]((name, []) for name in wanted)
    for first, batch in batches(wanted, 0) if wanted else ():
        if first >= count:
            break
        part = batch.slice(0, count - first)
        for name in wanted:
            column = part.column(part.schema.get_field_index(columns.image if name == path else name))
            values[name] += [one and one["path"] for one in column.to_pylist()] if name == path else column.to_pylist()
    labels = values.get(columns.label or "")
    for name in (columns.label, columns.id):
        if name and None in values[name]:
            row, nulls = values[name].index(None), values[name].count(None)
            kind = "labels" if name == columns.label else "ids"
            raise DataError(kind, f"{name} in {where} has {nulls} nulls, the first in row {row}; give all rows or none")
    if labels is not None:
        labels = check_labels(np.asarray(labels), f"{columns.label} in {where}", count)
    paths = values.get(path or "", [None] * count)
    files = partial(_encoded, batches, columns.image, count, where)
    _check_bytes(files, paths, where)
    names = [name or f"row {row}" for row, name in enumerate(paths)]
    record = record | {"label_column": columns.label}
    record["columns"] = [one for one in (columns.image, columns.label, columns.id) if one]
    return encoded_points(
        files,
        names,
        list(map(str, values[columns.id])) if columns.id else RowIds(count),
        reading,
        record,
        labels=labels,
        named=any(paths),
        class_names=columns.class_names,
    )


def columns_of(schema: pa.Schema, where: str, asked: str | None) -> ImageColumns:
    """The columns of a table of images, found by their types and by the Hugging Face metadata.

    Args:
        schema: its columns.
        where: what it is called in messages.
        asked: name or place of the column of labels, or None to look for it.
    """
    images = {column.name: column.type for column in schema if is_image_column(column.type)}
    image = _only(images, IMAGE_COLUMNS)
    if image is None:
        paths = next((one.name for one in schema if one.name in PATH_COLUMNS and is_text(one.type)), None)
        if paths is not None and not images:
            raise _no_bytes(f"{where} holds the paths of images in its column {paths!r} and not their bytes")
        raise DataError(
            "columns",
            f"{where} has {len(images)} columns of type struct<bytes: binary, ...>, the form of images; give it one, "
            f"or call one of them {' or '.join(IMAGE_COLUMNS)}. Its columns: {listed(schema.names, FIRST)}",
        )
    classes = class_names_of(schema, where)
    label = next((name for name in LABEL_COLUMNS if name in schema.names), None) or _only(classes, ())
    check_names(schema.names, where, ())
    if asked is not None:
        place = find_column(schema.names, len(schema.names), asked, where)
        label = schema.names[place]
        check_names(schema.names, where, () if label == asked else (place,))
    if label is None and len(classes) > 1:
        raise ParameterError(
            f"{where} has the columns of classes {' and '.join(map(repr, classes))}; name the one with the labels "
            "(--label-column, label_column=)"
        )
    for name, of_labels in ((label, True), (ID_COLUMN, False)):
        if name in schema.names:
            _check_kind(schema.field(name).type, f"{name} in {where}", of_labels)
    kinds = {field.name: field.type for field in images[image]}
    return ImageColumns(
        image=image,
        has_paths="path" in kinds and is_text(kinds["path"]),
        label=label,
        id=ID_COLUMN if ID_COLUMN in schema.names else None,
        class_names=classes.get(label) if label else None,
    )


def is_image_column(kind: pa.DataType) -> bool:
    """Whether a type is that of encoded images: a struct with `bytes`."""
    if not pa.types.is_struct(kind):
        return False
    kinds = {field.name: field.type for field in kind}
    return "bytes" in kinds and (pa.types.is_binary(kinds["bytes"]) or pa.types.is_large_binary(kinds["bytes"]))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is that of text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def class_names_of(schema: pa.Schema, where: str) -> dict[str, tuple[str, ...]]:
    """Class names of each column that the Hugging Face metadata declare as ClassLabel."""
    metadata = (schema.metadata or {}).get(b"huggingface")
    if metadata is None:
        return {}
    try:
        features = json.loads(metadata)["info"]["features"].items()
        labels = {
            name: one["names"] for name, one in features if isinstance(one, dict) and one.get("_type") == "ClassLabel"
        }
        return {name: tuple(map(str, names)) for name, names in labels.items() if name in schema.names}
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise DataError(
            "corrupt", f"the metadata 'huggingface' of {where} are not of the form that datasets writes: {error!r}"
        ) from error


def parquet_files(path: Path, split: str | None) -> tuple[list[Path], str | None]:
    """The files to read, in order, and the split they are: as many as their names say, numbered from 0 or 1 on."""
    files, split = split_files(path, NAME, split)
    if path.is_file():
        return files, split
    names = [match for file in files if (match := NAME.fullmatch(file.name))]
    declared = {int(one["shards"]) for one in names if one["shards"]}
    numbers, count = sorted(int(one["shard"] or -1) for one in names), len(files)
    numbered = count == 1 or numbers in ([*range(count)], [*range(1, count + 1)])
    if (declared and declared != {count}) or not numbered:
        some = listed([path_text(file.name) for file in files], 3)
        raise DataError(
            "corrupt",
            f"{path_text(path)} holds {count} files of a split, which are not all of its shards, or not numbered 0, 1, "
            f"2, ...: {some}; get the others, or give one file",
        )
    return files, split


@contextmanager
def open_parquet(file: Path) -> Iterator[PlainFile]:
    """A Parquet file of plain columns whose page checksums, where it has them, are verified."""
    try:
        with opened(file, path_text(file)) as parquet:
            yield parquet
    except ERRORS as error:
        raise DataError("corrupt", f"{path_text(file)} cannot be read as Parquet: {reason(error)}") from error


def _schema(file: Path) -> pa.Schema:
    with open_parquet(file) as parquet:
        return parquet.schema


def _row_count(files: Sequence[Path]) -> int:
    count = 0
    for file in files:
        with open_parquet(file) as parquet:
            count += parquet.metadata.num_rows
    return count


def _only(columns: Collection[str], preferred: Sequence[str]) -> str | None:
    """The preferred one of these columns, else the only one, else None."""
    return next((name for name in preferred if name in columns), next(iter(columns)) if len(columns) == 1 else None)


def _check_kind(kind: pa.DataType, where: str, of_labels: bool) -> None:
    """Raise where labels or ids are of a type that they cannot have."""
    whole = pa.types.is_integer(kind)
    if of_labels and not (whole or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError("labels", f"{where} has type {kind}; class indices are whole numbers: cast to int64")
    if not of_labels and not (whole or is_text(kind)):
        raise DataError("ids", f"{where} has type {kind}; expected text or whole numbers")


def _check_bytes(files: Callable[[int], Generator[BinaryIO, None, None]], paths: Sequence[Any], where: str) -> None:
    """Raise where the first images are all empty, and have paths: only these were stored."""
    if any(paths[:FIRST]):
        with closing(files(0)) as images:
            if not any(image.read(1) for image in islice(images, FIRST)):
                named = next(name for name in paths if name)
                raise _no_bytes(f"{where} holds the paths of images, such as {named!r:.80}, and not their bytes")


def _no_bytes(seen: str) -> DataError:
    return DataError(
        "corrupt",
        f"{seen}; give the folder that these images are in, or write the data with the bytes in them, as save_to_disk "
        "of datasets does",
    )


def _encoded(batches: Batches, column: str, count: int, where: str, start: int) -> Generator[BinaryIO, None, None]:
    """The encoded images of the rows `start` to `count`; an empty file where there are no bytes."""
    row = start
    for first, batch in batches([f"{column}.bytes"], start):
        images = batch.column(batch.schema.get_field_index(column))
        for image in images[max(0, start - first) : max(0, count - first)]:
            yield BytesIO(image["bytes"].as_py() or b"" if image.is_valid else b"")
            row += 1
        if row >= count:
            return
    raise DataError("corrupt", f"{where} ends after {row} of {count} rows that it declares; get it again")


def _batches(files: Sequence[Path], columns: list[str], start: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of the files from the group of rows that holds row `start`."""
    first, rows = 0, IMAGES if columns[0].endswith(".bytes") else ROWS
    for file in files:
        with open_parquet(file) as parquet:
            groups = []
            for group in range(parquet.metadata.num_row_groups):
                own = parquet.metadata.row_group(group).num_rows
                if first + own > start or groups:
                    groups.append(group)
                else:
                    first += own
            for batch in parquet.batches(rows, columns, groups) if groups else ():
                yield first, batch
                first += len(batch)
