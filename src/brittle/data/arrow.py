"""Columns of files as Arrow: text files and Parquet."""

import csv
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import accumulate, islice
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from brittle.data.files import changed_error, files_digest, path_text, refuse_split, split_files
from brittle.data.reading import Reading
from brittle.errors import DataError, ParameterError, first_line, listed
from brittle.store.plain_parquet import ERRORS, ROWS_UNPACKED, PlainFile

LABEL_NAMES = ("label", "labels", "target", "targets", "class", "y")  # names of a column of labels, whatever the case

_NAME = re.compile(r"(?P<split>.*?)(?:(?:^|-)(?P<shard>\d{4,})(?:-of-(?P<shards>\d+))?)?\.parquet")
_ERRORS = (*ERRORS, ValueError, LookupError)  # exceptions of broken files


class ArrowFile(NamedTuple):
    """A file of columns, read in `parts` in one go each; `image.bytes` is a column where `image` is one of structs."""

    path: Path
    schema: pa.Schema
    parts: tuple[int, ...]
    read: Callable[..., pa.Table]


@dataclass(frozen=True)
class Sheet:
    """The rows of files that agree in their columns."""

    files: tuple[ArrowFile, ...]
    source: str
    record: dict[str, Any]

    @property
    def schema(self) -> pa.Schema:
        return self.files[0].schema

    @property
    def rows(self) -> int:
        return sum(sum(file.parts) for file in self.files)

    @property
    def class_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the classes of each column that the metadata of Hugging Face declare as `ClassLabel`."""
        metadata = (self.schema.metadata or {}).get(b"huggingface")
        if metadata is None:
            return {}
        try:
            features = json.loads(metadata)["info"]["features"].items()
            kinds = [(name, kind) for name, kind in features if isinstance(kind, dict) and name in self.schema.names]
            return {name: tuple(map(str, kind["names"])) for name, kind in kinds if kind.get("_type") == "ClassLabel"}
        except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
            raise DataError(
                "corrupt", f"the metadata 'huggingface' of {self.source} are not as datasets writes them: {error!r}"
            ) from error

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns of all rows; there is at least one row."""
        if not self.rows:
            raise DataError("empty_dataset", f"{self.source} holds no rows; expected at least 1")
        return pa.concat_tables(file.read(columns) for file in self.files if sum(file.parts))


class EncodedColumn:
    """The encoded images of a column by their rows; one part of one file is held in memory at a time."""

    def __init__(self, table: Sheet, name: str) -> None:
        self.table, self.name = table, name
        self.parts = [(file, part) for file in table.files for part, rows in enumerate(file.parts) if rows]
        self.ends = list(accumulate(file.parts[part] for file, part in self.parts))
        self.held: tuple[int, pa.ChunkedArray | None] = (-1, None)
        self.lock = Lock()  # so that a part is read by one of the threads that decode

    def __call__(self, row: int) -> BinaryIO:
        """Return the image of a row, an empty file where there are no bytes."""
        place = bisect_right(self.ends, row)
        with self.lock:
            held, images = self.held
            if held != place or images is None:
                file, part = self.parts[place]
                images = file.read([f"{self.name}.bytes"], part).column(0)
                if len(images) != file.parts[part]:
                    raise changed_error(
                        self.table.source, f"part {part} of {path_text(file.path)} has {len(images)} rows"
                    )
                self.held = place, images
        return BytesIO(images[row - self.ends[place]].as_py() or b"")

    def __reduce__(self) -> Any:
        return EncodedColumn, (self.table, self.name)


def is_csv(path: Path) -> bool:
    """Return whether `path` is a text file of a table."""
    return path.is_file() and path.suffix.lower() in (".csv", ".tsv")


def is_table(path: Path) -> bool:
    """Return whether `path` is a text file of a table, Parquet, or a folder of Parquet."""
    if path.is_file():
        return is_csv(path) or path.suffix == ".parquet"
    return any(file.is_file() for file in path.glob("*.parquet"))


def is_image(kind: pa.DataType) -> bool:
    """Return whether a type is that of encoded images: a struct with `bytes`."""
    kinds = {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}
    return "bytes" in kinds and (pa.types.is_binary(kinds["bytes"]) or pa.types.is_large_binary(kinds["bytes"]))


def open_table(path: Path, reading: Reading) -> Sheet:
    """Return the table in a text file, or in the files of one split."""
    if is_csv(path):
        refuse_split(path, reading.split)
        return Sheet((_open_csv(path, reading),), path_text(path), reading.record(path, files_digest(path, [path])))
    paths, split = split_files(path, _NAME, reading.split)
    if path.is_dir():
        _check_shards(path, paths)
    files = tuple(map(_open_parquet, paths))
    for file in files:
        if not file.schema.equals(files[0].schema):
            raise DataError(
                "columns",
                f"{path_text(file.path)} has the columns {file.schema.names}, {path_text(files[0].path)} has "
                f"{files[0].schema.names}; the files of a split must agree in names and types",
            )
    file_names = [path_text(file.name) for file in paths]
    return Sheet(files, path_text(path), reading.record(path, files_digest(path, paths), split=split, files=file_names))


def _open_csv(path: Path, reading: Reading) -> ArrowFile:
    """Return the cells of a text file in UTF-8 as text, apart by commas, else semicolons, or tabs (.tsv)."""
    source = path_text(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            start = file.readline()
            comma = "\t" if path.suffix.lower() == ".tsv" else ";" if ";" in start and "," not in start else ","
            file.seek(0)
            # PyArrow reads on where a quote is never closed, and refuses rows longer than its blocks.
            rows = filter(None, csv.reader(file, delimiter=comma, strict=True))
            header = next(rows, None)
            if header is None:
                raise DataError("empty_dataset", f"{source} holds no rows; expected at least 1")
            names, parts = [cell.strip() for cell in header], []
            _check_header(names, reading, source)
            while chunk := list(islice(rows, ROWS_UNPACKED)):
                odd = next((row for row in chunk if len(row) != len(header)), None)
                if odd is not None:
                    fault = f"{source} has {len(header)} columns, and a row of {len(odd)}: {odd!r:.60}"
                    raise DataError("columns", f"{fault}; give all rows as many cells")
                cells = [pa.array(column, pa.string()) for column in zip(*chunk, strict=True)]
                parts.append(pa.Table.from_arrays(cells, names))
    except (csv.Error, UnicodeError, OSError) as error:
        raise DataError("corrupt", f"{source} is not a readable table in UTF-8: {first_line(error)}") from error
    cells = pa.concat_tables([pa.schema([(name, pa.string()) for name in names]).empty_table(), *parts])
    return ArrowFile(path, cells.schema, (len(cells),), cells.select)


def _check_header(names: Sequence[str], reading: Reading, source: str) -> None:
    """Raise where the first row may be values: one is a number, and no cell is asked for or all count from 0."""
    columns = (reading.label_column, reading.text_column)
    requested = {column for column in columns if column is not None and not is_number(column)}
    numbers = [name for name in names if is_number(name)]
    counted = any(name.lower() in LABEL_NAMES for name in names) and numbers == list(map(str, range(len(numbers))))
    if numbers and not counted and not requested.intersection(names):
        raise ParameterError(
            f"the first row of {source} must name the columns, and holds numbers: {', '.join(names[:3])}; write a name "
            "over each, or name the column of the labels with --label-column (label_column=)"
        )


def is_number(cell: str) -> bool:
    """Return whether a cell of text holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, a table does not


def _check_shards(path: Path, files: Sequence[Path]) -> None:
    """Raise where files are not all shards of a split: as many as their names say, numbered from 0 or 1 on."""
    names = [match for file in files if (match := _NAME.fullmatch(file.name))]
    declared = {int(match["shards"]) for match in names if match["shards"]}
    numbers, count = sorted(int(match["shard"] or -1) for match in names), len(files)
    numbered = count == 1 or numbers in ([*range(count)], [*range(1, count + 1)])
    if declared not in (set(), {count}) or not numbered:
        file_names = listed([path_text(file.name) for file in files])
        fault = f"{path_text(path)} holds {count} files of a split, not all of its shards: {file_names}"
        raise DataError("corrupt", f"{fault}; get the others, or give one file")


def _open_parquet(path: Path) -> ArrowFile:
    """Return a Parquet file of plain columns, whose page checksums, where it has them, are verified."""
    with _readable(path), PlainFile(path, path_text(path)) as parquet:
        metadata = parquet.metadata
        parts = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        return ArrowFile(path, parquet.schema_arrow, parts, partial(_read_parquet, path))


def _read_parquet(path: Path, columns: Sequence[str], part: int | None = None) -> pa.Table:
    with _readable(path), PlainFile(path, path_text(path)) as parquet:
        table = pa.Table.from_batches(list(parquet.batches(ROWS_UNPACKED, columns, None if part is None else [part])))
        return (table if set(columns).issubset(table.column_names) else table.flatten()).select(columns)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        raise DataError("corrupt", f"{path_text(path)} cannot be read as Parquet: {first_line(error)}") from error
