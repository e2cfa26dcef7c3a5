"""Parquet files of plain columns: opened without trust, their page checksums verified.

An extension type may bring metadata that other programs unpickle, so a file that has one is refused before a value is
read, and so is a file whose pages unpack to far more than the file holds. PyArrow runs and unpickles nothing by itself.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from brittle.errors import ArtefactError

ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError)  # on broken files, or without memory
MOST_TIMES = 2000  # columns may unpack to this many times the size of the file
ALWAYS_READ = 1 << 27  # columns that unpack to fewer bytes are read from a file of any size
ROWS_UNPACKED = 1 << 8  # rows that are unpacked at a time
FEW_ROWS = 1 << 20  # number of rows that is read from a file of any size; more only where the file has a byte for each


class PlainFile(pq.ParquetFile):
    """An open Parquet file, or its bytes, found plain; columns in `shared` come as dictionaries."""

    def __init__(self, source: Path | bytes, name: str, shared: Sequence[str] = ()) -> None:
        self.name, self.size = name, len(source) if isinstance(source, bytes) else source.stat().st_size
        place: Any = pa.BufferReader(source) if isinstance(source, bytes) else source
        if not isinstance(source, bytes | Path):
            place = source.open("rb")  # a path of a store
        super().__init__(place, page_checksum_verification=True, read_dictionary=list(shared))
        _check_plain(self.schema_arrow, name)
        # Nothing is asked of single columns: on broken ones PyArrow ends the whole process.
        groups = [self.metadata.row_group(number) for number in range(self.metadata.num_row_groups)]
        self._check_unpacked_size(sum(group.total_byte_size for group in groups))
        rows = max(self.metadata.num_rows, sum(group.num_rows for group in groups))
        if rows > max(FEW_ROWS, self.size):
            fault = f"{name} says that its {self.size:,} bytes hold {rows:,} rows"
            raise ArtefactError("file_refused", f"{fault}; get it from another source")

    def batches(
        self, rows: int, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the columns, so many rows at a time, read by this thread alone."""
        unpacked = 0
        for batch in self.iter_batches(batch_size=rows, columns=columns, row_groups=groups, use_threads=False):
            batch.validate(full=True)
            unpacked += sum(map(_unpacked_size, batch.columns))
            self._check_unpacked_size(unpacked)
            yield batch

    def _check_unpacked_size(self, unpacked: int) -> None:
        if unpacked > max(ALWAYS_READ, MOST_TIMES * self.size):
            fault = (
                f"{self.name} has {self.size:,} bytes that unpack to {unpacked:,} or more, over {MOST_TIMES:,} times"
            )
            raise ArtefactError("file_refused", f"{fault} as many; get it from another source")


def _check_plain(schema: pa.Schema, name: str) -> None:
    """Raise `ArtefactError` where a schema has an extension type, also inside of others."""
    waiting = [(field.name, field) for field in schema]
    while waiting:
        path, field = waiting.pop()
        kind: Any = field.type
        if isinstance(kind, pa.BaseExtensionType) or b"ARROW:extension:name" in (field.metadata or {}):
            raise ArtefactError(
                "file_refused",
                f"the column {path!r:.100} of {name} has an extension type ({kind!s:.60}); cast it to a plain one",
            )
        inner = [kind.field(number) for number in range(kind.num_fields)]
        waiting += [(f"{path}.{part.name}", part) for part in inner]
        if pa.types.is_dictionary(kind):
            waiting.append((path, pa.field("values", kind.value_type)))


def _unpacked_size(column: pa.Array) -> int:
    """Count the bytes of a column with its dictionary resolved, a value in every row."""
    if not isinstance(column, pa.DictionaryArray):
        return column.nbytes
    sizes = pc.call_function("binary_length", [column.dictionary]).take(column.indices)
    return column.indices.nbytes + (pc.call_function("sum", [sizes]).as_py() or 0)
