"""Data sets of images or numbers as `save_to_disk` of Hugging Face `datasets` writes them: Arrow with `state.json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from brittle.data.files import changed_error, choose_split, files_digest, path_text, refuse_split
from brittle.data.parquet import columns_of, image_points
from brittle.data.points import ListedPoints
from brittle.data.reading import Reading
from brittle.data.tables import DataTable, arrow_table, has_features, table_points
from brittle.errors import ArtefactError, BrittleError, DataError
from brittle.store.plain_parquet import check_plain, reason
from brittle.store.strict_json import FormatProblem, Limits, parse_json, read_text

STATE, SPLITS = "state.json", "dataset_dict.json"
"""Files that say what lies in the folder of a data set, and of a data set with splits."""

_LIMITS = Limits(size=1 << 22, characters=1 << 12, printable=False)
_END = b"\xff\xff\xff\xff\0\0\0\0"
_ERRORS = (pa.ArrowException, OSError, EOFError, ValueError, OverflowError, LookupError)
"""What broken streams raise."""


@dataclass(frozen=True)
class ArrowStream:
    """A file of Arrow batches that was found plain: nothing compressed, no dictionaries, no types that bring code.

    Attributes:
        file: where it lies.
        schema: its columns.
        parts: where each batch begins, and how many rows it holds.
    """

    file: Path
    schema: pa.Schema
    parts: tuple[tuple[int, int], ...]

    @classmethod
    def open(cls, path: Path) -> ArrowStream:
        """The stream in a file, all of which is read once."""
        schema, parts = None, []
        with _readable(path), pa.OSFile(str(path)) as file:
            reader = pa.ipc.MessageReader.open_stream(file)
            while True:
                start = file.tell()
                try:
                    message = reader.read_next_message()
                except StopIteration:
                    break
                if message.type == "schema" and schema is None:
                    schema = pa.ipc.read_schema(message)
                    check_plain(schema, path_text(path))
                    continue
                if message.type != "record batch" or schema is None or _is_compressed(message.metadata.to_pybytes()):
                    raise ArtefactError(
                        "file_refused",
                        f"{path_text(path)} has a message at byte {start:,} that is compressed or of another kind; "
                        "only plain batches are read, as save_to_disk of datasets writes them",
                    )
                rows = len(_checked_batch(message, schema))
                if rows > 8 * max(message.body.size, 1):
                    raise ValueError(f"it says that {message.body.size:,} bytes hold {rows:,} rows")
                parts.append((start, rows))
            file.seek(start)
            if schema is None or file.read(len(_END)) != _END:
                raise EOFError(f"it ends at byte {start:,} without a mark of the end")
        return cls(path, schema, tuple(parts))

    def batches(self, start: int = 0) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The batches from the one that holds row `start`, each with its first row."""
        first = 0
        with pa.OSFile(str(self.file)) as file:
            for place, rows in self.parts:
                if first + rows > start:
                    file.seek(place)
                    message = pa.ipc.MessageReader.open_stream(file).read_next_message()
                    yield first, _checked_batch(message, self.schema)
                first += rows


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
        return has_features(ArrowStream.open(_data_files(folder)[0]).schema)
    except (BrittleError, StopIteration):
        return False  # the reader of images says what is wrong


def read_saved_table(path: Path, reading: Reading) -> ListedPoints:
    """Points of a saved data set of numbers; columns are found, and others refused, as in Parquet tables."""
    streams, record = _open(path, reading)
    return table_points(_as_table(streams, path, record), reading)


def read_saved_dataset(path: Path, reading: Reading) -> ListedPoints:
    """Points of a saved data set of images; columns are found as in Parquet files."""
    streams, record = _open(path, reading)
    columns = columns_of(streams[0].schema, path_text(streams[0].file), reading.label_column)
    count = sum(rows for stream in streams for _, rows in stream.parts)
    return image_points(partial(_batches, streams, path_text(path)), count, columns, reading, record)


def _as_table(streams: Sequence[ArrowStream], path: Path, record: dict[str, Any]) -> DataTable:
    batches = (batch for _, batch in _batches(streams, path_text(path), [], 0))
    return arrow_table(streams[0].schema, batches, path_text(path), record)


def _batches(
    streams: Sequence[ArrowStream], data: str, columns: Sequence[str], start: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of all columns from row `start`."""
    before = 0
    for stream in streams:
        rows = sum(own for _, own in stream.parts)
        if before + rows > start:
            try:
                for first, batch in stream.batches(start - before):
                    yield before + first, batch
            except _ERRORS as error:
                changed = f"{path_text(stream.file)} cannot be read again ({reason(error)})"
                raise changed_error(data, changed) from error
        before += rows


def _open(path: Path, reading: Reading) -> tuple[list[ArrowStream], dict[str, Any]]:
    """The files of the data set to read, which have the same columns, and where they come from."""
    root, split = path, None
    if (path / SPLITS).is_file():
        splits = _json(path / SPLITS).get("splits")
        names = [name for name in splits if isinstance(name, str)] if isinstance(splits, list) else []
        split = choose_split(path, names, reading.split)
        root = _inside(path, split)
    else:
        refuse_split(path, reading.split)
    streams = [ArrowStream.open(file) for file in _data_files(root)]
    for stream in streams:
        if not stream.schema.equals(streams[0].schema):
            raise DataError(
                "columns", f"{path_text(stream.file)} and {path_text(streams[0].file)} have different columns"
            )
    files = [stream.file for stream in streams]
    named = [path_text(one.name) for one in files]
    return streams, reading.record(path, files_digest(root, files), split=split, files=named)


def _data_files(root: Path) -> list[Path]:
    """The files of a data set, in order."""
    state = _json(root / STATE)
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise DataError(
            "corrupt",
            f"{path_text(root)} holds a choice of rows beside its data; save it again after dataset.flatten_indices()",
        )
    files = state.get("_data_files")
    names = [one.get("filename") if isinstance(one, dict) else None for one in files] if isinstance(files, list) else []
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
        content = parse_json(read_text(path, _LIMITS), _LIMITS)
    except (OSError, FormatProblem) as error:
        raise DataError("corrupt", f"{path_text(path)} cannot be read: {error}; save the data set again") from error
    if not isinstance(content, dict):
        raise DataError("corrupt", f"{path_text(path)} is no JSON object; save the data set again")
    return content


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        raise DataError("corrupt", f"{path_text(file)} cannot be read as Arrow: {reason(error)}") from error


def _checked_batch(message: Any, schema: pa.Schema) -> pa.RecordBatch:
    batch = pa.ipc.read_record_batch(message, schema)
    batch.validate(full=True)
    return batch


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
