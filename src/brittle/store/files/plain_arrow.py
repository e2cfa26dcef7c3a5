"""Arrow IPC streams of plain columns, read batch by batch without trust.

The frame of every message is read here before PyArrow sees it, so a body that is compressed, and may unpack to any
size, or that is larger than the file, is refused. A frame is a flatbuffer, as the Arrow columnar format says.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from brittle.errors import ArtefactError
from brittle.store.files.plain_parquet import check_plain

_CONTINUES = b"\xff\xff\xff\xff"
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
"""Kinds of messages."""

_KIND, _HEADER, _BODY = 1, 2, 3
"""Places of the fields of a message that are read."""

_ROWS, _COMPRESSION = 0, 3
"""Places of the fields of a batch that are read."""

ERRORS = (pa.ArrowException, OSError, EOFError, struct.error, ValueError, OverflowError, LookupError)
"""What broken streams raise."""


@dataclass(frozen=True)
class Part:
    """A batch of rows in a stream.

    Attributes:
        start: where its message begins.
        size: bytes of the message.
        rows: how many it holds.
    """

    start: int
    size: int
    rows: int


@dataclass(frozen=True)
class PlainStream:
    """A stream that was found plain.

    Attributes:
        file: where it lies.
        schema: its columns.
        parts: its batches, in order.
    """

    file: Path
    schema: pa.Schema
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        """How many rows all batches hold."""
        return sum(part.rows for part in self.parts)

    def batches(self, start: int = 0) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The batches from the one that holds row `start`, each with its first row.

        Raises:
            Exception: one of `ERRORS`, where the file is damaged or changed.
        """
        first = 0
        with self.file.open("rb") as stream:
            for part in self.parts:
                if first + part.rows > start:
                    yield first, self._read(stream, part)
                first += part.rows

    def column(self, name: str) -> pa.ChunkedArray:
        """A column, whole.

        Raises:
            Exception: one of `ERRORS`.
        """
        place = self.schema.get_field_index(name)
        chunks = [batch.column(place) for _, batch in self.batches()]
        return pa.chunked_array(chunks, self.schema.field(place).type)

    def _read(self, stream: BinaryIO, part: Part) -> pa.RecordBatch:
        stream.seek(part.start)
        content = stream.read(part.size)
        if len(content) < part.size:
            raise EOFError(f"it ends inside the batch at byte {part.start:,}")
        batch = pa.ipc.read_record_batch(pa.py_buffer(content), self.schema)
        batch.validate(full=True)
        if len(batch) != part.rows:
            raise ValueError(f"the batch at byte {part.start:,} holds {len(batch)} of {part.rows} rows")
        return batch


@contextmanager
def opened(file: Path, name: str) -> Iterator[PlainStream]:
    """A stream that was found plain.

    Args:
        file: where it lies.
        name: what to call it in messages.

    Raises:
        ArtefactError: it is compressed, or has dictionaries, an extension type or pickled metadata.
        Exception: one of `ERRORS`, where it is damaged.
    """
    size = file.stat().st_size
    schema: pa.Schema | None = None
    parts: list[Part] = []
    with file.open("rb") as stream:
        while (found := _message(stream, size)) is not None:
            kind, part, compressed = found
            if kind == _SCHEMA and schema is None:
                stream.seek(part.start)
                schema = pa.ipc.read_schema(pa.py_buffer(stream.read(part.size)))
                check_plain(schema, name)
            elif kind != _BATCH or compressed or schema is None:
                what = "compressed" if compressed else "of dictionaries" if kind == _DICTIONARY else "of another kind"
                raise ArtefactError(
                    "file_refused",
                    f"{name} has a message at byte {part.start:,} that is {what}; only plain batches are read, as "
                    "save_to_disk of datasets writes them",
                )
            else:
                parts.append(part)
            stream.seek(part.start + part.size)
    if schema is None:
        raise EOFError("it holds no schema")
    yield PlainStream(file, schema, tuple(parts))


def _message(stream: BinaryIO, size: int) -> tuple[int, Part, bool] | None:
    """Kind and place of the message that begins here, and whether it is a compressed batch; None at the end."""
    start = stream.tell()
    mark, length = struct.unpack("<4si", stream.read(8))
    if mark != _CONTINUES:
        raise ValueError("it is no stream of Arrow")
    if length == 0:
        return None
    if not 0 < length <= size - start - 8:
        raise EOFError(f"it ends inside the message at byte {start:,}")
    table = _Table.root(stream.read(length))
    kind, body = table.number(_KIND, "<B"), table.number(_BODY, "<q")
    if not 0 <= body <= size - start - 8 - length:
        raise EOFError(f"it ends inside the message at byte {start:,}")
    header = table.table(_HEADER)
    is_batch = kind == _BATCH
    rows = header.number(_ROWS, "<q") if is_batch else 0
    if rows < 0 or rows > max(body, 1) * 8:
        raise ValueError(f"the message at byte {start:,} says that {body:,} bytes hold {rows:,} rows")
    return kind, Part(start, 8 + length + body, rows), is_batch and header.has(_COMPRESSION)


@dataclass(frozen=True)
class _Table:
    """A table of a flatbuffer.

    Attributes:
        content: the flatbuffer.
        at: where the table begins.
    """

    content: bytes
    at: int

    @classmethod
    def root(cls, content: bytes) -> _Table:
        return cls(content, _unpacked(content, "<I", 0))

    def has(self, field: int) -> bool:
        """Whether the field is there."""
        return bool(self._offset(field))

    def number(self, field: int, form: str) -> int:
        """A number; 0 where it is left out."""
        offset = self._offset(field)
        return _unpacked(self.content, form, self.at + offset) if offset else 0

    def table(self, field: int) -> _Table:
        """A table."""
        place = self.at + self._offset(field)
        return _Table(self.content, place + _unpacked(self.content, "<I", place))

    def _offset(self, field: int) -> int:
        own = self.at - _unpacked(self.content, "<i", self.at)
        entry = 4 + 2 * field
        return _unpacked(self.content, "<H", own + entry) if entry < _unpacked(self.content, "<H", own) else 0


def _unpacked(content: bytes, form: str, at: int) -> int:
    if at < 0:
        raise ValueError("it points outside")
    return struct.unpack_from(form, content, at)[0]
