"""Images in Parquet files, as Hugging Face writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from brittle.data.arrays import check_labels
from brittle.data.encoded import EncodedImages
from brittle.data.files import file_digest, files_digest, path_text
from brittle.data.listed import ListedPoints, RowIds
from brittle.data.options import ReadingOptions
from brittle.data.tabular import check_distinct, check_no_index, find_label
from brittle.errors import DataError, ParameterError, listed
from brittle.store.files.plain_parquet import ERRORS, PlainFile, opened, reason

IMAGE_COLUMNS = ("image", "img")
"""Preferred where several columns hold images."""

PATH_COLUMNS = (*IMAGE_COLUMNS, "path", "file", "file_name", "image_path", "filepath")
"""ImageColumns of text under these names are taken for the paths of images."""

_GIVE_BYTES = (
    "give the folder that these images are in, or write the data with the bytes in them, as save_to_disk of datasets "
    "does"
)

LABEL_COLUMNS, ID_COLUMN = ("label", "labels"), "id"

FIRST = 8
"""Images that are looked at to see whether there are bytes."""

IMAGES, ROWS = 1, 1 << 8
"""Encoded images, and rows of the other columns, that are unpacked at a time."""

_NAME = re.compile(r"(?P<split>.*?)(?:(?:^|-)(?P<shard>\d{4,})(?:-of-(?P<shards>\d+))?)?\.parquet")


def is_parquet(path: Path) -> bool:
    """Whether `path` is a Parquet file or a folder of them."""
    return path.suffix == ".parquet" if path.is_file() else any(file.is_file() for file in path.glob("*.parquet"))


def read_parquet(path: Path, options: ReadingOptions) -> ListedPoints:
    """Points in a Parquet file, or in the files of one split in a folder (`test-00000-of-00002.parquet`).

    The image column is the one of type struct with `bytes`; labels are the column that the options name, else
    `label` or `labels`, else the only ClassLabel feature; ids are the column `id` or the row numbers.

    Raises:
        DataError: no such split or column, a file is damaged or differs from the others, images differ in size.
    """
    files, split = split_files(path, options.split)
    columns = _common_columns(files, options.label_column)
    rows = _read_rows(files, columns, options.limit)
    count = len(rows.ids)
    if not count:
        raise DataError("empty_dataset", f"{path_text(path)} holds no rows; expected at least 1")
    with closing(_encoded(files, columns.image, 0, count)) as first:
        check_bytes(islice(first, FIRST), rows.paths, path_text(path))
    names = tuple(name or f"row {row}" for row, name in enumerate(rows.paths))
    images = EncodedImages.open(partial(_encoded, files, columns.image, stop=count), names, options)
    provenance: dict[str, Any] = {
        "format": "parquet",
        "path": path_text(path),
        "split": split,
        "sha256": file_digest(path) if path.is_file() else files_digest(path, files),
        "points": count,
        "limit": options.limit,
        "files": [path_text(one.name) for one in files],
        "label_column": columns.label,
        "columns": [column for column in (columns.image, columns.label, columns.id) if column],
        **options.of_images,
    }
    return ListedPoints(
        ids=rows.ids,
        read=images.read,
        bounds=options.bounds,
        provenance=provenance,
        labels=rows.labels,
        names=names if any(rows.paths) else None,
        class_names=columns.class_names,
    )


@dataclass(frozen=True)
class ImageColumns:
    """The columns that are read, and the names of the classes.

    Attributes:
        image: struct with `bytes`.
        path: its field `path`, or None.
        label: class indices, or None.
        id: ids, or None.
        class_names: from the Hugging Face metadata, or None.
    """

    image: str
    path: str | None
    label: str | None
    id: str | None
    class_names: tuple[str, ...] | None


@dataclass(frozen=True)
class _Rows:
    """What is known of the rows before an image is read, `[N]` each."""

    ids: tuple[str, ...] | RowIds
    labels: tuple[int, ...] | None
    paths: tuple[str | None, ...]


def split_files(path: Path, split: str | None) -> tuple[list[Path], str | None]:
    """The files to read, in order, and the split they are."""
    if path.is_file():
        own = _named(path)["split"] or None
        if split is not None and split != own:
            raise DataError(
                "split", f"{path_text(path)} is the split {own!r}, not {split!r}; leave out --split (split=)"
            )
        return [path], own
    splits: dict[str, list[Path]] = {}
    for file in sorted(file for file in path.glob("*.parquet") if file.is_file()):
        splits.setdefault(_named(file)["split"] or "", []).append(file)
    if split is None and len(splits) == 1:
        split = next(iter(splits))
    if split is None or split not in splits:
        asked = "no split was named" if split is None else f"there is no split {split!r}"
        there = ", ".join(name or "(without a name)" for name in splits)
        raise DataError("split", f"{path_text(path)} holds the splits {there}; {asked}: name one with --split (split=)")
    _check_complete(path, splits[split])
    return splits[split], split or None


def _named(file: Path) -> dict[str, str | None]:
    """Split, shard and number of shards in the name of a file."""
    match = _NAME.fullmatch(file.name)
    return match.groupdict() if match else {"split": file.stem, "shard": None, "shards": None}


def _check_complete(path: Path, files: Sequence[Path]) -> None:
    """Raise unless these files are all shards of a split: as many as their names say, numbered from 0 or 1 on."""
    named, count = [_named(file) for file in files], len(files)
    declared = {int(one["shards"]) for one in named if one["shards"]}
    numbers = sorted(int(one["shard"] or -1) for one in named)
    wrong = ""
    if declared and declared != {count}:
        wrong = f"{count} files of a split whose file names say {max(declared)}"
    elif count > 1 and numbers not in ([*range(count)], [*range(1, count + 1)]):
        wrong = f"{count} files of a split that are not numbered as its shards, 0, 1, 2, ..."
    if wrong:
        some = listed([path_text(file.name) for file in files], 3)
        raise DataError("corrupt", f"{path_text(path)} holds {wrong}: {some}; get the others, or give one file")


def _common_columns(files: Sequence[Path], asked: str | None) -> ImageColumns:
    """The columns of the first file, which all others must have too."""
    found = {file: _columns(file, asked) for file in files}
    first = found[files[0]]
    for file, columns in found.items():
        if columns != first:
            raise DataError(
                "columns",
                f"{path_text(file)} has {columns}, {path_text(files[0])} has {first}; the files of a split must agree",
            )
    return first


def _columns(file: Path, asked: str | None) -> ImageColumns:
    """The columns of a file."""
    with open_parquet(file) as parquet:
        return columns_of(parquet.schema, path_text(file), asked)


def columns_of(schema: pa.Schema, where: str, asked: str | None) -> ImageColumns:
    """The columns of a table of images, found by their types and by the Hugging Face metadata.

    Args:
        schema: its columns.
        where: what it is called in messages.
        asked: name or place of the column of labels, or None to look for it.

    Raises:
        DataError: it has no column of images, or several; two columns share a name; the place that was asked for is
            that of an index; or its metadata are of another form.
        ParameterError: there is no such column of labels, or several may be it.
    """
    check_distinct(schema.names, where)
    images = {column.name: column.type for column in schema if is_image_column(column.type)}
    image = _only(images, IMAGE_COLUMNS)
    if image is None:
        there = ", ".join(f"{column.name}: {column.type}" for column in schema)
        paths = next((one.name for one in schema if one.name in PATH_COLUMNS and is_text(one.type)), None)
        if paths is not None and not images:
            raise DataError(
                "corrupt",
                f"{where} holds the paths of images in its column {paths!r} and not their bytes; {_GIVE_BYTES}",
            )
        raise DataError(
            "columns",
            f"{where} has {len(images)} columns of type struct<bytes: binary, ...>, the form of images; "
            f"give it one, or call one of them {' or '.join(IMAGE_COLUMNS)}. Its columns: {there}",
        )
    fields = {field.name: field.type for field in images[image]}
    class_names = class_names_of(schema, where)
    label = _label_column(schema.names, class_names, asked, where)
    return ImageColumns(
        image=image,
        path=f"{image}.path" if "path" in fields and is_text(fields["path"]) else None,
        label=label,
        id=ID_COLUMN if ID_COLUMN in schema.names else None,
        class_names=class_names.get(label) if label else None,
    )


def _label_column(names: Sequence[str], classes: Collection[str], asked: str | None, where: str) -> str | None:
    """The column of the labels, or None; `classes` are the columns that are declared as classes."""
    if asked is not None:
        place = find_label(names, len(names), asked, where)
        if names[place] != asked:
            check_no_index(names, [place], where)
        return names[place]
    found = next((name for name in LABEL_COLUMNS if name in names), None) or _only(classes, ())
    if found is None and len(classes) > 1:
        both = " and ".join(map(repr, classes))
        raise ParameterError(
            f"{where} has the columns of classes {both}; name the one with the labels (--label-column, label_column=)",
        )
    return found


def _only(columns: Collection[str], preferred: Sequence[str]) -> str | None:
    """The preferred one of these columns, else the only one, else None."""
    return next((name for name in preferred if name in columns), next(iter(columns)) if len(columns) == 1 else None)


def is_image_column(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind):
        return False
    fields = {field.name: field.type for field in kind}
    return "bytes" in fields and (pa.types.is_binary(fields["bytes"]) or pa.types.is_large_binary(fields["bytes"]))


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def class_names_of(schema: pa.Schema, where: str) -> dict[str, tuple[str, ...]]:
    """Class names of each column that the Hugging Face metadata declare as ClassLabel.

    Raises:
        DataError: the metadata are of another form.
    """
    metadata = (schema.metadata or {}).get(b"huggingface")
    if metadata is None:
        return {}
    try:
        features = json.loads(metadata)["info"]["features"].items()
        labels = {name: one["names"] for name, one in features if _is_classes(one)}
        return {name: tuple(map(str, names)) for name, names in labels.items() if name in schema.names}
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise DataError(
            "corrupt",
            f"the metadata 'huggingface' of {where} are not of the form that datasets writes: {error!r}",
        ) from error


def _is_classes(feature: Any) -> bool:
    """Whether what the metadata say of a column makes it one of classes; of a column of lists it may be a list."""
    return isinstance(feature, dict) and feature.get("_type") == "ClassLabel"


def _read_rows(files: Sequence[Path], columns: ImageColumns, limit: int | None) -> _Rows:
    """All that is needed but the images themselves, of the first `limit` rows."""
    wanted = [column for column in (columns.label, columns.id, columns.path) if column]
    parts: list[_Rows] = []
    left = limit
    for file in files:
        with open_parquet(file) as parquet:
            part = _read(parquet, wanted) if wanted else pa.table({"row": pa.nulls(parquet.metadata.num_rows)})
        parts.append(_rows_of(part if left is None else part.slice(0, left), columns, path_text(file)))
        left = None if left is None else left - len(parts[-1].ids)
    count = sum(len(part.ids) for part in parts)
    return _Rows(
        ids=tuple(own for part in parts for own in part.ids) if columns.id else RowIds(count),
        labels=tuple(label for part in parts for label in part.labels or ()) if columns.label else None,
        paths=tuple(path for part in parts for path in part.paths),
    )


def _rows_of(rows: pa.Table, columns: ImageColumns, where: str) -> _Rows:
    """Those of one file, whose columns need not have the types that they have in others."""
    return _Rows(
        ids=ids_of(rows[columns.id], where) if columns.id else RowIds(len(rows)),
        labels=labels_of(rows[columns.label], f"{columns.label} in {where}") if columns.label else None,
        paths=_paths(rows[columns.image]) if columns.path else (None,) * len(rows),
    )


def check_bytes(images: Iterator[BinaryIO], paths: Sequence[str | None], where: str) -> None:
    """Raise where the first images are all empty, and have paths.

    Raises:
        DataError: they are: only the paths were stored.
    """
    if any(paths[:FIRST]) and not any(image.read(1) for image in images):
        named = next(name for name in paths if name)
        raise DataError(
            "corrupt",
            f"{where} holds the paths of images, such as {named!r:.80}, and not their bytes; {_GIVE_BYTES}",
        )


def ids_of(column: pa.ChunkedArray, where: str) -> tuple[str, ...]:
    if not (is_text(column.type) or pa.types.is_integer(column.type)) or column.null_count:
        raise DataError(
            "ids",
            f"{ID_COLUMN} in {where} has type {column.type} and {column.null_count} nulls; expected text or "
            f"whole numbers without nulls",
        )
    return tuple(str(own) for own in column.to_pylist())


def labels_of(column: pa.ChunkedArray, where: str) -> tuple[int, ...]:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError("labels", f"{where} has type {kind}; class indices are whole numbers: cast the column to int64")
    labels = column.to_pylist()
    if column.null_count:
        raise DataError(
            "labels",
            f"{where} has {column.null_count} nulls, the first in row {labels.index(None)}; label all rows or none",
        )
    return check_labels(np.asarray(labels), where, len(labels)) if len(labels) else ()


def _paths(column: pa.ChunkedArray) -> tuple[str | None, ...]:
    return tuple(image and image["path"] for image in column.to_pylist())


def _encoded(files: Sequence[Path], column: str, start: int, stop: int) -> Generator[BinaryIO, None, None]:
    """The encoded images of the rows `start` to `stop`; an empty file where there are no bytes."""
    before = 0
    for file in files:
        with open_parquet(file) as parquet:
            groups = []
            for group in range(parquet.metadata.num_row_groups):
                rows = parquet.metadata.row_group(group).num_rows
                if before + rows > start or groups:
                    groups.append(group)
                else:
                    before += rows
            for batch in parquet.batches(IMAGES, [f"{column}.bytes"], groups):
                for image in batch.column(0)[max(0, start - before) : max(0, stop - before)]:
                    yield BytesIO(image["bytes"].as_py() or b"" if image.is_valid else b"")
                before += len(batch)
                if before >= stop:
                    return
    ending = f"{path_text(files[-1])} ends after {before} of {stop} rows that it declares"
    raise DataError("corrupt", f"{ending}; get it again")


def _read(parquet: PlainFile, columns: Sequence[str]) -> pa.Table:
    """These columns of a file."""
    batches = list(parquet.batches(ROWS, columns))
    return pa.Table.from_batches(batches) if batches else parquet.file.read(columns, use_threads=False)


@contextmanager
def open_parquet(file: Path) -> Iterator[PlainFile]:
    """A Parquet file of plain columns whose page checksums, where it has them, are verified."""
    try:
        with opened(file, path_text(file)) as parquet:
            yield parquet
    except ERRORS as error:
        raise DataError("corrupt", f"{path_text(file)} cannot be read as Parquet: {reason(error)}") from error
