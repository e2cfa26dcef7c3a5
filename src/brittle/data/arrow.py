"""Columns of files as Arrow: text files, Parquet, and what `save_to_disk` of Hugging Face `datasets` writes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brittle.data.files import choose_split, files_digest, path_text, refuse_split, split_files
from brittle.data.reading import Reading
from brittle.errors import ArtefactError, DataError, ParameterError, listed
from brittle.store.plain_parquet import ERRORS, check_plain, opened, reason
from brittle.store.strict_json import FormatProblem, Limits, parse_json, read_text

SUFFIXES = (".csv", ".tsv")
"""What text files of tables end in."""

LABEL_NAMES = ("label", "labels", "target", "targets", "class", "y")
"""A column that is called so holds the labels, if it is the only one and no other is named; case does not matter."""

STATE = "state.json"
_LIMITS = Limits(size=1 << 22, characters=1 << 12, printable=False)
"""A file in the folder of each split of a saved data set."""

IMAGES, ROWS = 1, 1 << 8
"""Encoded images, and rows of other columns, that are unpacked at a time."""

_CHUNK = 1 << 12
_NAME = re.compile(r"(?P<split>.*?)(?:(?:^|-)(?P<shard>\d{4,})(?:-of-(?P<shards>\d+))?)?\.(?:parquet|arrow)")
_END = b"\xff\xff\xff\xff\0\0\0\0"
_ERRORS = (*ERRORS, EOFError, ValueError, LookupError)
"""What broken files raise."""


class ArrowFile(NamedTuple):
    """One file of columns.

    Attributes:
        path: where it lies.
        schema: its columns.
        rows: how many rows it has.
        read: called with the columns that are needed (None for all) and a row, gives batches that hold these columns,
            each with its first row, from one that holds the row or comes before it.
    """

    path: Path
    schema: pa.Schema
    rows: int
    read: Callable[[Sequence[str] | None, int], Iterator[tuple[int, pa.RecordBatch]]]


@dataclass(frozen=True)
class Table:
    """The rows of files that agree in their columns.

    Attributes:
        files: in their order.
        where: what messages call it.
        record: where it comes from.
        header: whether its columns have names; otherwise they are called by their places.
    """

    files: tuple[ArrowFile, ...]
    where: str
    record: dict[str, Any]
    header: bool = True

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.files[0].schema

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(file.rows for file in self.files)

    @property
    def class_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the classes of each column that the metadata of Hugging Face declare as `ClassLabel`."""
        metadata = (self.schema.metadata or {}).get(b"huggingface")
        if metadata is None:
            return {}
        try:
            features = json.loads(metadata)["info"]["features"].items()
            declared = [(name, one) for name, one in features if isinstance(one, dict) and name in self.schema.names]
            return {name: tuple(map(str, one["names"])) for name, one in declared if one.get("_type") == "ClassLabel"}
        except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
            raise DataError(
                "corrupt", f"the metadata 'huggingface' of {self.where} are not as datasets writes them: {error!r}"
            ) from error

    def batches(self, columns: Sequence[str] | None = None, start: int = 0) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches that hold these columns from row `start` or before it, each with its first row."""
        before = 0
        for file in self.files:
            if before + file.rows > start:
                with _readable(file.path):
                    for first, batch in file.read(columns, max(start - before, 0)):
                        yield before + first, batch
            before += file.rows

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of all rows."""
        kinds = pa.schema([self.schema.field(name) for name in columns])
        needed = None if len(columns) > len(self.schema) // 2 else columns
        # Taken, because the columns of a saved data set would hold its images, with which they lie, in memory.
        parts = [pc.take(one.select(columns), pa.array(np.arange(len(one)))) for _, one in self.batches(needed)]
        return pa.Table.from_batches(parts, kinds)


def is_csv(path: Path) -> bool:
    """Whether `path` is a text file of a table."""
    return path.is_file() and path.suffix.lower() in SUFFIXES


def is_table(path: Path) -> bool:
    """Whether `path` is a text file of a table, Parquet, or a folder of Parquet or of a saved data set."""
    return is_csv(path) or is_saved(path) or bool(_parquet(path))


def is_saved(path: Path) -> bool:
    """Whether `path` is a folder that `save_to_disk` wrote, of one data set or of one for each split."""
    return path.is_dir() and bool(_saved_roots(path))


def is_image(kind: pa.DataType) -> bool:
    """Whether a type is that of encoded images: a struct with `bytes`."""
    kinds = {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}
    return "bytes" in kinds and (pa.types.is_binary(kinds["bytes"]) or pa.types.is_large_binary(kinds["bytes"]))


def first_schema(path: Path) -> pa.Schema:
    """The columns of the first file of a table of Arrow."""
    if is_saved(path):
        file = _saved_files(_saved_roots(path)[0])[0]
        with _readable(file), pa.OSFile(str(file)) as stream:
            return pa.ipc.open_stream(stream).schema
    file = min(_parquet(path))
    with _readable(file), opened(file, path_text(file)) as parquet:
        return parquet.schema


def open_table(path: Path, reading: Reading) -> Table:
    """The table in a text file, or in the files of one split."""
    if is_csv(path):
        refuse_split(path, reading.split)
        file, header = _open_csv(path, reading)
        return Table((file,), path_text(path), reading.record(path, files_digest(path, [path])), header)
    root, (first, *others) = path, _saved_roots(path) or [path]
    if is_saved(path):
        if first == path:
            refuse_split(path, reading.split)
        split = None if first == path else choose_split(path, [one.name for one in (first, *others)], reading.split)
        root = path if split is None else path / split
        files = tuple(map(_open_stream, _saved_files(root)))
    else:
        paths, split = split_files(path, _NAME, reading.split)
        files = tuple(map(_open_parquet, paths if path.is_file() else _whole(path, paths)))
    for file in files:
        if not file.schema.equals(files[0].schema):
            raise DataError(
                "columns",
                f"{path_text(file.path)} has the columns {file.schema.names}, {path_text(files[0].path)} has "
                f"{files[0].schema.names}; the files of a split must agree in names and types",
            )
    paths = [file.path for file in files]
    named = [path_text(file.name) for file in paths]
    record = reading.record(path, files_digest(root, paths), split=split, files=named)
    return Table(files, path_text(path), record)


def _open_csv(path: Path, reading: Reading) -> tuple[ArrowFile, bool]:
    """The cells of a text file in UTF-8, all as text, and whether its first row names the columns.

    They are separated by commas, by semicolons where the first line has no comma, and in a `.tsv` file by tabs. Empty
    lines are left out.
    """
    where = path_text(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            start = file.readline()
            file.seek(0)
            comma = ";" if ";" in start and "," not in start else ","
            lines = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else comma, strict=True)
            rows = filter(None, lines)
            first = next(rows, None)
            if first is None:
                raise DataError("empty_dataset", f"{where} holds no rows; expected at least 1")
            header = _is_header(first, reading, where)
            names = [cell.strip() for cell in first] if header else list(map(str, range(len(first))))
            parts, some = [], [] if header else [first]
            while some := [*some, *islice(rows, _CHUNK)]:
                odd = next((row for row in some if len(row) != len(first)), None)
                if odd is not None:
                    raise DataError(
                        "columns",
                        f"{where} has a row of {len(odd)} cells at or before line {lines.line_num} ({odd!r:.60}), and "
                        f"the first row has {len(first)}; mend it",
                    )
                cells = [pa.array(column, pa.string()) for column in zip(*some, strict=True)]
                parts.append(pa.RecordBatch.from_arrays(cells, names))
                some = []
    except (csv.Error, UnicodeError, OSError) as error:
        raise DataError("corrupt", f"{where} is not a readable table in UTF-8: {error}") from error
    schema = pa.schema([(name, pa.string()) for name in names])
    return ArrowFile(path, schema, sum(map(len, parts)), partial(_from_memory, parts)), header


def _from_memory(
    parts: Sequence[pa.RecordBatch], columns: Sequence[str] | None, start: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    first = 0
    for part in parts:
        yield first, part
        first += len(part)


def _is_header(row: Sequence[str], reading: Reading, where: str) -> bool:
    """Whether the first row names the columns: it holds a name that is asked for, or none of its cells is a number, or
    all but that of the labels count from 0 as pandas does."""
    names = [cell.strip() for cell in row]
    asked = {one for one in (reading.label_column, reading.text_column) if one is not None and not is_number(one)}
    numbers = [float(name) for name in names if is_number(name)]
    if asked.intersection(names) or not numbers:
        return True
    labelled = any(name.lower() in LABEL_NAMES for name in names)
    places = list(map(str, range(len(numbers))))
    if labelled and [name for name in names if is_number(name)] == places:
        return True
    counted = len(numbers) > 1 and numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])
    if labelled or counted:
        raise ParameterError(
            f"the first row of {where} may be names of columns or values: {', '.join(names[:3])}; write a name that is "
            "no number over each column, or name that of the labels with --label-column (label_column=)"
        )
    return False


def is_number(cell: str) -> bool:
    """Whether a cell of text holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, a table does not


def _parquet(path: Path) -> list[Path]:
    """The file itself, or the Parquet files in a folder."""
    if path.is_file():
        return [path] if path.suffix == ".parquet" else []
    return [file for file in path.glob("*.parquet") if file.is_file()]


def _whole(path: Path, files: list[Path]) -> list[Path]:
    """These files, which are all shards of a split: as many as their names say, numbered from 0 or 1 on."""
    names = [match for file in files if (match := _NAME.fullmatch(file.name))]
    declared = {int(one["shards"]) for one in names if one["shards"]}
    numbers, count = sorted(int(one["shard"] or -1) for one in names), len(files)
    numbered = count == 1 or numbers in ([*range(count)], [*range(1, count + 1)])
    if (declared and declared != {count}) or not numbered:
        raise DataError(
            "corrupt",
            f"{path_text(path)} holds {count} files of a split, which are not all of its shards, or not numbered 0, 1, "
            f"2, ...: {listed([path_text(file.name) for file in files], 3)}; get the others, or give one file",
        )
    return files


def _open_parquet(path: Path) -> ArrowFile:
    """A Parquet file of plain columns, whose page checksums, where it has them, are verified."""
    with _readable(path), opened(path, path_text(path)) as parquet:
        return ArrowFile(path, parquet.schema, parquet.metadata.num_rows, partial(_from_parquet, path))


def _from_parquet(path: Path, columns: Sequence[str] | None, start: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches from the group of rows that holds row `start`."""
    with opened(path, path_text(path)) as parquet:
        first, group = 0, 0
        while group < parquet.metadata.num_row_groups and first + parquet.metadata.row_group(group).num_rows <= start:
            first += parquet.metadata.row_group(group).num_rows
            group += 1
        size = IMAGES if columns is not None and any(name.endswith(".bytes") for name in columns) else ROWS
        groups = range(group, parquet.metadata.num_row_groups)
        for batch in parquet.batches(size, columns, list(groups)) if groups else ():
            yield first, batch
            first += len(batch)


def _saved_roots(path: Path) -> list[Path]:
    """The folder of a saved data set itself, or those of its splits."""
    return [path] if (path / STATE).is_file() else sorted(file.parent for file in path.glob(f"*/{STATE}"))


def _saved_files(root: Path) -> list[Path]:
    """The files of a saved data set, in the order that its state gives."""
    try:
        state = parse_json(read_text(root / STATE, _LIMITS), _LIMITS)
    except (OSError, FormatProblem) as error:
        raise DataError("corrupt", f"{path_text(root / STATE)} cannot be read: {error}; save the data again") from error
    state = state if isinstance(state, dict) else {}
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise DataError(
            "corrupt",
            f"{path_text(root)} holds a choice of rows beside its data; save it again after dataset.flatten_indices()",
        )
    files = state.get("_data_files")
    names = [one.get("filename") if isinstance(one, dict) else None for one in files] if isinstance(files, list) else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise DataError("corrupt", f"{path_text(root / STATE)} names no files of data; save the data set again")
    found = [root / str(name) for name in names]
    for file in found:
        if file.parent != root or file.resolve().parent != root.resolve():
            raise ArtefactError("file_refused", f"{path_text(root)} names {file.name!r:.80}, which lies elsewhere")
    return found


def _open_stream(path: Path) -> ArrowFile:
    """A file of Arrow batches, all of which is read once: of plain types, and with a mark of its end."""
    rows = 0
    with _readable(path), pa.OSFile(str(path)) as file:
        _check_messages(file, path_text(path))
        file.seek(0)
        stream = pa.ipc.open_stream(file)
        check_plain(stream.schema, path_text(path))
        for batch in stream:
            batch.validate(full=True)
            rows += len(batch)
        file.seek(max(0, file.size() - len(_END)))
        if file.read() != _END or rows > 8 * file.size():
            raise EOFError(f"it ends without a mark, or says that {file.size():,} bytes hold {rows:,} rows")
    return ArrowFile(path, stream.schema, rows, partial(_from_stream, path))


def _check_messages(file: pa.NativeFile, name: str) -> None:
    """Refuse what may unpack to any size: batches that are compressed, and all but plain ones."""
    for place, message in enumerate(pa.ipc.MessageReader.open_stream(file)):
        wanted = "record batch" if place else "schema"
        if message.type != wanted or (place and _is_compressed(message.metadata.to_pybytes())):
            raise ArtefactError(
                "file_refused",
                f"{name} has a message that is compressed or of another kind; only plain batches are read, as "
                f"save_to_disk of datasets writes them",
            )


def _is_compressed(metadata: bytes) -> bool:
    """Whether the body of a batch is compressed, and may unpack to any size: its header has a fourth field.

    The metadata of a message are a flatbuffer, of which PyArrow has verified the frame and tells nothing else. A table
    begins with how far before it lies the list of its fields: bytes of the list, of the table, then where each lies.
    """

    def number(at: int, size: int) -> int:
        return int.from_bytes(metadata[at : at + size], "little", signed=size == 4)

    def field_place(table: int, place: int) -> int:
        fields = table - number(table, 4)
        inside = 4 + 2 * place < number(fields, 2)
        own = number(fields + 4 + 2 * place, 2) if inside else 0
        return table + own if own else 0

    header = field_place(number(0, 4), 2)
    return not header or bool(field_place(header + number(header, 4), 3))


def _from_stream(path: Path, columns: Sequence[str] | None, start: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of all columns from the one that holds row `start`; those before it are passed over in the map."""
    first = 0
    with pa.memory_map(str(path)) as file:
        for batch in pa.ipc.open_stream(file):
            if first + len(batch) > start:
                batch.validate(full=True)
                yield first, batch
            first += len(batch)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        kind = "Parquet" if path.suffix == ".parquet" else "Arrow"
        raise DataError("corrupt", f"{path_text(path)} cannot be read as {kind}: {reason(error)}") from error
