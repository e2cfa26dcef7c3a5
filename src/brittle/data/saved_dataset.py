"""Data sets of images or numbers as `save_to_disk` of Hugging Face `datasets` writes them: Arrow with `state.json`."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from brittle.data.encoded import EncodedImages
from brittle.data.feature_parquet import feature_points, has_features
from brittle.data.files import changed_error, files_digest, path_text
from brittle.data.listed import ListedPoints, RowIds
from brittle.data.options import ReadingOptions
from brittle.data.parquet import FIRST, ImageColumns, check_bytes, columns_of, ids_of, labels_of
from brittle.errors import ArtefactError, BrittleError, DataError
from brittle.store.files.plain_arrow import ERRORS, PlainStream, opened
from brittle.store.files.plain_parquet import reason
from brittle.store.files.strict_json import FormatProblem, Limits, parse_json, read_text

STATE, SPLITS = "state.json", "dataset_dict.json"
"""Files that say what lies in the folder of a data set, and of a data set with splits."""

_LIMITS = Limits(size=1 << 22, characters=1 << 12, printable=False)


def is_saved_dataset(path: Path) -> bool:
    """Whether `path` is a folder that `save_to_disk` wrote."""
    return path.is_dir() and any((path / name).is_file() for name in (STATE, SPLITS))


def is_saved_table(path: Path) -> bool:
    """Whether `path` is such a folder of a data set without images, with a column of numbers."""
    if not is_saved_dataset(path):
        return False
    try:
        folder = path
        if (path / SPLITS).is_file():
            folder = next(one for one in sorted(path.iterdir()) if (one / STATE).is_file())
        return has_features(_stream(_data_files(folder)[0]).schema)
    except (BrittleError, StopIteration):
        return False  # the reader of images says what is wrong


def read_saved_table(path: Path, options: ReadingOptions) -> ListedPoints:
    """Points of a saved data set of numbers; columns are found, and others refused, as in Parquet tables.

    Raises:
        DataError: there is no such split, a file is damaged or missing, or a cell is missing or no number.
        ParameterError: there is no such column of labels, or several may be it.
        ArtefactError: a file is named that lies elsewhere, is compressed, or has types that could run code.
    """
    root, split = _root(path, options.split)
    files = _data_files(root)
    streams = _streams(files)
    provenance = {
        "format": "datasets-table",
        "path": path_text(path),
        "split": split,
        "sha256": files_digest(root, files),
        "files": [path_text(one.name) for one in files],
    }
    return feature_points(
        streams[0].schema, _batches(streams), path_text(path), replace(options, split=split), provenance
    )


def _batches(streams: Sequence[PlainStream]) -> Iterator[pa.RecordBatch]:
    for stream in streams:
        with _damage(stream.file):
            yield from (batch for _, batch in stream.batches())


def read_saved_dataset(path: Path, options: ReadingOptions) -> ListedPoints:
    """Points of a saved data set of images; columns are found as in Parquet files.

    Raises:
        DataError: there is no such split or column, a file is damaged or missing, images differ in size, or only their
            paths were stored.
        ArtefactError: a file is named that lies elsewhere, is compressed, or has types that could run code.
    """
    root, split = _root(path, options.split)
    files = _data_files(root)
    streams = _streams(files)
    columns = columns_of(streams[0].schema, path_text(files[0]), options.label_column)
    count = min(sum(stream.rows for stream in streams), options.limit or 1 << 62)
    if not count:
        raise DataError("empty_dataset", f"{path_text(root)} holds no rows; expected at least 1")
    ids, labels, paths = _rows(streams, columns, count)
    with closing(_encoded(streams, columns.image, 0, count, path_text(path))) as first:
        check_bytes(islice(first, FIRST), paths, path_text(path))
    names = tuple(name or f"row {row}" for row, name in enumerate(paths))
    rows = partial(_encoded, streams, columns.image, stop=count, data=path_text(path))
    images = EncodedImages.open(rows, names, options)
    return ListedPoints(
        ids=ids,
        read=images.read,
        bounds=options.bounds,
        provenance={
            "format": "datasets",
            "path": path_text(path),
            "split": split,
            "sha256": files_digest(root, files),
            "points": count,
            "limit": options.limit,
            "files": [path_text(one.name) for one in files],
            "label_column": columns.label,
            "columns": [column for column in (columns.image, columns.label, columns.id) if column],
            **options.of_images,
        },
        labels=labels,
        names=names if any(paths) else None,
        class_names=columns.class_names,
    )


def _root(path: Path, split: str | None) -> tuple[Path, str | None]:
    """The folder of the data set to read, and the split that it is."""
    where = path_text(path)
    if not (path / SPLITS).is_file():
        if split is not None:
            raise DataError("split", f"{where} is one data set without splits; leave out --split (split=)")
        return path, None
    found = _json(path / SPLITS).get("splits")
    names = [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
    if split is None and len(names) == 1:
        split = names[0]
    if split is None or split not in names:
        asked = "no split was named" if split is None else f"there is no split {split!r:.40}"
        there = ", ".join(names) or "none"
        raise DataError("split", f"{where} holds the splits {there}; {asked}: name one with --split (split=)")
    return _inside(path, split), split


def _data_files(root: Path) -> list[Path]:
    """The files of a data set, in order."""
    state = _json(root / STATE)
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise DataError(
            "corrupt",
            f"{path_text(root)} holds a choice of rows beside its data; save it again after dataset.flatten_indices()",
        )
    listed = state.get("_data_files")
    names = (
        [one.get("filename") if isinstance(one, dict) else None for one in listed] if isinstance(listed, list) else []
    )
    if not names or not all(isinstance(name, str) and name for name in names):
        raise DataError("corrupt", f"{path_text(root / STATE)} names no files of data; save the data set again")
    return [_inside(root, str(name)) for name in names]


def _inside(folder: Path, name: str) -> Path:
    """What is called so in a folder, and nowhere else."""
    path = folder / name
    if Path(name).name != name or path.resolve().parent != folder.resolve():
        raise ArtefactError(
            "file_refused", f"{path_text(folder)} names {name!r:.80}, which lies elsewhere; save the data set again"
        )
    return path


def _json(path: Path) -> dict[str, Any]:
    try:
        found = parse_json(read_text(path, _LIMITS), _LIMITS)
    except (OSError, FormatProblem) as error:
        raise DataError("corrupt", f"{path_text(path)} cannot be read: {error}; save the data set again") from error
    if not isinstance(found, dict):
        raise DataError("corrupt", f"{path_text(path)} is no JSON object; save the data set again")
    return found


def _streams(files: Sequence[Path]) -> list[PlainStream]:
    """The files of a data set, which have the same columns."""
    streams = [_stream(file) for file in files]
    for stream in streams[1:]:
        if not stream.schema.equals(streams[0].schema):
            raise DataError("columns", f"{path_text(stream.file)} and {path_text(files[0])} have different columns")
    return streams


def _stream(file: Path) -> PlainStream:
    with _damage(file), opened(file, path_text(file)) as stream:
        return stream


@contextmanager
def _damage(file: Path) -> Iterator[None]:
    """Tell what broken files raise as one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError("corrupt", f"{path_text(file)} is named and not there; get it too") from error
    except ERRORS as error:
        raise DataError("corrupt", f"{path_text(file)} cannot be read as a stream of Arrow: {reason(error)}") from error


def _rows(
    streams: Sequence[PlainStream], columns: ImageColumns, count: int
) -> tuple[tuple[str, ...] | RowIds, tuple[int, ...] | None, tuple[str | None, ...]]:
    """Ids, labels and the paths of the images of the first `count` rows."""
    where = path_text(streams[0].file)
    ids = ids_of(_column(streams, columns.id, count), where) if columns.id else RowIds(count)
    labels = labels_of(_column(streams, columns.label, count), f"{columns.label} in {where}") if columns.label else None
    if columns.path is None:
        return ids, labels, (None,) * count
    paths = [own for stream in streams for own in _paths(stream, columns.image)]
    return ids, labels, tuple(paths[:count])


def _column(streams: Sequence[PlainStream], name: str, count: int) -> pa.ChunkedArray:
    chunks: list[pa.Array] = []
    for stream in streams:
        with _damage(stream.file):
            chunks += stream.column(name).chunks
    return pa.chunked_array(chunks).slice(0, count)


def _paths(stream: PlainStream, image: str) -> Iterator[str | None]:
    with _damage(stream.file):
        for _, batch in stream.batches():
            yield from batch.column(batch.schema.get_field_index(image)).field("path").to_pylist()


def _encoded(
    streams: Sequence[PlainStream], image: str, start: int, stop: int, data: str
) -> Generator[BinaryIO, None, None]:
    """The encoded images of the rows `start` to `stop`; an empty file where there are no bytes."""
    before = 0
    for stream in streams:
        if before + stream.rows <= start:
            before += stream.rows
            continue
        try:
            for first, batch in stream.batches(max(0, start - before)):
                column = batch.column(batch.schema.get_field_index(image)).field("bytes")
                for place in range(len(batch)):
                    if start <= before + first + place < stop:
                        yield BytesIO(column[place].as_py() or b"")
        except ERRORS as error:
            raise changed_error(data, f"{path_text(stream.file)} cannot be read again ({reason(error)})") from error
        before += stream.rows
        if before >= stop:
            return
