"""The shard files that the manifest of a run names, read without trust."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa

from brittle.errors import StorageError, printable
from brittle.store.files.plain_parquet import ERRORS, opened, reason
from brittle.store.files.records import check_inside
from brittle.store.manifest import ShardFile

ROWS = 1 << 8
"""Rows that are unpacked at a time."""

_TEXTS = (pa.string(), pa.binary())
"""Columns that are read so that a value of many rows is held once: a small file may hold a large one for all rows."""

_SHARD = r"(points|scores|counterexamples)-\d{5,}(-\d+)?\.parquet"
_STRAY = re.compile(rf"{_SHARD}|\.({_SHARD}|run\.json|manifest\.json)(\..*)?\.tmp", re.DOTALL)
"""Names of shards, and of the files of a run while they are written."""


@dataclass(frozen=True)
class Fault:
    """A file of a run folder that is not as it should be.

    Attributes:
        file: its name in the run folder.
        problem: what is wrong with it.
        stray: whether it is no part of the run, so that readers pass over it.
    """

    file: str
    problem: str
    stray: bool = False

    def __str__(self) -> str:
        return printable(f"{self.file}: {self.problem}")


class ShardError(StorageError):
    """A shard file is not what was written; `problem` says what is wrong with it."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            "shard_damaged", f"{path} {problem}; score again with --resume, which computes only what is lost"
        )
        self.problem = problem


def read_bytes(folder: Path, shard: ShardFile) -> bytes:
    """The bytes of a shard file, which are those that were written.

    Raises:
        ArtefactError: the file is a link out of the folder.
        ShardError: it is missing, or its size or digest is another.
        StorageError: it cannot be read.
    """
    path = folder / shard.file
    if not path.is_file():
        raise ShardError(path, "is missing")
    check_inside(path)
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size == shard.bytes else b""
    except OSError as error:
        raise StorageError("unreadable", f"{path} cannot be read ({error.strerror})") from error
    if len(content) != shard.bytes:
        raise ShardError(path, f"has {size} bytes, not the {shard.bytes} of the manifest")
    if hashlib.sha256(content).hexdigest() != shard.sha256:
        raise ShardError(path, "is not what was written (its sha256 differs)")
    return content


def decode(content: bytes, schema: pa.Schema, path: Path) -> pa.Table:
    """The table in the bytes of a shard file, read by this thread alone.

    Arrow's own threads may let go of `content` after the read is over; where Python is ending by then, that aborts it
    (https://github.com/apache/arrow/issues/49942). `pq.read_table` starts them whatever it is told.

    Raises:
        ArtefactError: it has an extension type, or unpacks to far more than it holds.
        ShardError: it is not Parquet, its columns are others, or a page or a text in it is damaged.
    """
    try:
        with opened(content, str(path)) as file:
            if not file.schema.equals(schema):
                raise ShardError(path, f"has other columns than a run writes ({_differing(file.schema, schema)})")
        with opened(content, str(path), [one.name for one in schema if one.type in _TEXTS]) as file:
            return pa.Table.from_batches(list(file.batches(ROWS)), file.schema).cast(schema)
    except ERRORS as error:
        raise ShardError(path, f"cannot be read as Parquet ({reason(error)})") from error


def strays(folder: Path, shards: Iterable[ShardFile]) -> list[Fault]:
    """The files of `folder` that are named as shards or temporary files and that the manifest does not name."""
    known = {shard.file for shard in shards}
    there = sorted(path.name for path in folder.iterdir() if is_stray(path.name))
    problem = "not in the manifest, so no part of the run; what ended the writer left it, and score --resume removes it"
    return [Fault(name, problem, stray=True) for name in there if name not in known]


def is_stray(name: str) -> bool:
    """Whether a file of a run folder that the manifest does not name is named as a shard or a temporary file of one."""
    return bool(_STRAY.fullmatch(name))


def _differing(found: pa.Schema, expected: pa.Schema) -> str:
    """The first column that is another, in words."""
    theirs, ours = ([f"{one.name}: {one.type}" for one in schema] for schema in (found, expected))
    pairs = zip_longest(theirs, ours, fillvalue="nothing")
    return next((f"{its!r:.80} instead of {mine!r}" for its, mine in pairs if its != mine), "some may be null")
