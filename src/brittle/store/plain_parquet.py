"""Parquet files of plain columns: opened without trust, their page checksums verified.

An extension type may bring metadata that other programs unpickle, so a file that has one is refused before a value is
read, and so is a file whose pages unpack to far more than the file holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from brittle.errors import ArtefactError

ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError)
"""What PyArrow raises on broken files; `ArrowException` includes running out of memory."""

MOST_TIMES = 2000
"""Columns may unpack to this many times the size of the file."""

ALWAYS_READ = 1 << 27
"""Columns that unpack to fewer bytes are read from a file of any size."""

FEW_ROWS = 1 << 20
"""So many rows are read from a file of any size; more only where it has a byte for each."""

_EXTENSION_NAME = b"ARROW:extension:name"


@dataclass(frozen=True)
class PlainFile:
    """An open Parquet file that was found plain.

    Attributes:
        file: the file.
        size: its bytes.
        name: what to call it in messages.
    """

    file: pq.ParquetFile
    size: int
    name: str

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.file.schema_arrow

    @property
    def metadata(self) -> pq.FileMetaData:
        """The numbers of rows and row groups."""
        return self.file.metadata

    def batches(
        self, rows: int, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The columns, so many rows at a time, read by this thread alone.

        A value that the file holds once and says of every row is unpacked once for each of these rows.

        Raises:
            ArtefactError: they unpack to far more than the file holds.
            Exception: one of `ERRORS`, where the file is damaged.
        """
        unpacked = 0
        for batch in self.file.iter_batches(batch_size=rows, columns=columns, row_groups=groups, use_threads=False):
            batch.validate(full=True)
            unpacked += sum(map(_unpacked, batch.columns))
            if unpacked > _most(self.size):
                raise _too_large(self.name, self.size, unpacked)
            yield batch


@contextmanager
def opened(source: Path | bytes, name: str, shared: Sequence[str] = ()) -> Iterator[PlainFile]:
    """A Parquet file that was found plain.

    Args:
        source: the file, or its bytes.
        name: what to call it in messages.
        shared: columns of texts or bytes of which a value that many rows repeat is held once; they come as
            dictionaries.

    Raises:
        ArtefactError: it has an extension type or pickled metadata, or says that it unpacks to far more than it holds.
        Exception: one of `ERRORS`, where it is damaged.
    """
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    place = pa.BufferReader(source) if isinstance(source, bytes) else source
    with pq.ParquetFile(place, page_checksum_verification=True, read_dictionary=list(shared)) as file:
        check_plain(file.schema_arrow, name)
        _check_size(file.metadata, size, name)
        yield PlainFile(file, size, name)


def reason(error: BaseException) -> str:
    """The first line of what PyArrow said."""
    return str(error).partition("\n")[0] or type(error).__name__


def check_plain(schema: pa.Schema, name: str) -> None:
    """Raise `ArtefactError` where a schema has an extension type, or metadata that other programs unpickle."""
    _check_metadata(schema.metadata, name, "the file")
    for field in schema:
        _check_field(field, name, field.name)


def _check_field(field: pa.Field, name: str, where: str) -> None:
    metadata = field.metadata or {}
    extension = isinstance(field.type, pa.BaseExtensionType) or _EXTENSION_NAME in metadata
    if extension:
        kind = metadata.get(_EXTENSION_NAME, str(field.type).encode())
        raise ArtefactError(
            "file_refused",
            f"the column {where!r:.100} of {name} has the extension type "
            f"{kind.decode(errors='backslashreplace')!r:.60}; only plain types are read: cast it to its storage type",
        )
    _check_metadata(metadata, name, f"the column {where!r:.100}")
    for part in _parts(field.type):
        _check_field(part, name, f"{where}.{part.name}")


def _parts(kind: Any) -> list[pa.Field]:
    """The fields inside a nested type."""
    if pa.types.is_dictionary(kind):
        return [pa.field("values", kind.value_type)]
    return [kind.field(number) for number in range(kind.num_fields)]


def _check_metadata(metadata: Mapping[bytes, bytes] | None, name: str, where: str) -> None:
    for key, value in (metadata or {}).items():
        if value[:1] == b"\x80" and value[-1:] == b".":
            raise ArtefactError(
                "file_refused",
                f"{where} of {name} carries a pickle as its metadata {key.decode(errors='backslashreplace')!r:.60}; "
                f"write the file without it",
            )


def _check_size(metadata: pq.FileMetaData, size: int, name: str) -> None:
    # Nothing is asked of single columns: on broken ones PyArrow ends the whole process.
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    if unpacked > _most(size):
        raise _too_large(name, size, unpacked)
    rows = max(metadata.num_rows, sum(group.num_rows for group in groups))
    if rows > max(FEW_ROWS, size):
        raise ArtefactError(
            "file_refused", f"{name} says that its {size:,} bytes hold {rows:,} rows; get it from another source"
        )


def _unpacked(column: pa.Array) -> int:
    """Bytes of a column where every row holds its own value."""
    if not isinstance(column, pa.DictionaryArray):
        return column.nbytes
    sizes = pc.call_function("binary_length", [column.dictionary]).take(column.indices)
    return column.indices.nbytes + (pc.call_function("sum", [sizes]).as_py() or 0)


def _most(size: int) -> int:
    """Bytes to which the columns of a file of this size may unpack."""
    return max(ALWAYS_READ, MOST_TIMES * size)


def _too_large(name: str, size: int, unpacked: int) -> ArtefactError:
    return ArtefactError(
        "file_refused",
        f"{name} has {size:,} bytes that unpack to {unpacked:,} or more; at most {MOST_TIMES:,} times is read: get it "
        f"from another source",
    )
