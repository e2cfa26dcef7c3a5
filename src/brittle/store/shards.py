"""The shards of a run folder: the manifest that lists them, and their files, read without trust."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pyarrow as pa

from brittle.errors import ArtefactError, StorageError, printable
from brittle.store.account import Account
from brittle.store.plain_parquet import ERRORS, opened, reason
from brittle.store.record import check_inside, read_object
from brittle.store.strict_json import Count, Digest
from brittle.store.writing import check_target

RECORD, MANIFEST, LOCK = "run.json", "manifest.json", ".lock"
"""What the record of a run, the list of its shards and the lock of its writer are called."""

ROWS = 1 << 8
"""Rows that are unpacked at a time."""

_TEXTS = (pa.string(), pa.binary())
"""Columns that are read so that a value of many rows is held once: a small file may hold a large one for all rows."""

_SHARD = r"(points|scores|counterexamples)-\d{5,}\.parquet"
_STRAY = re.compile(rf"{_SHARD}|\.({_SHARD}|run\.json|manifest\.json)(\..*)?\.tmp", re.DOTALL)
"""Names of shards, and of the files of a run while they are written."""


@dataclass(frozen=True)
class ShardFile:
    """A file of a shard, as the manifest names it.

    Attributes:
        file: its name in the run folder.
        bytes: its size.
        sha256: digest of its bytes, 64 hexadecimal digits.
    """

    file: str
    bytes: Count
    sha256: Digest


@dataclass(frozen=True)
class ShardEntry:
    """A shard that exists.

    Attributes:
        number: position of the shard in the run.
        account: what became of its points.
        points: the file of its points.
        scores: the file of its scores.
        counterexamples: the file of the inputs found with another prediction, or None where there are none.
    """

    number: Count
    account: Account
    points: ShardFile
    scores: ShardFile
    counterexamples: ShardFile | None = None

    @property
    def files(self) -> dict[str, ShardFile]:
        """Its files, by the kind of their rows."""
        found = {"points": self.points, "scores": self.scores, "counterexamples": self.counterexamples}
        return {kind: file for kind, file in found.items() if file is not None}


@dataclass(frozen=True)
class Manifest:
    """The shards that exist, in order.

    Attributes:
        format: version of the run folder's layout.
        shards: the entry of each.
    """

    format: int
    shards: tuple[ShardEntry, ...]

    @property
    def files(self) -> Iterator[tuple[str, ShardFile]]:
        """The files of all shards, each with the kind of its rows."""
        return (pair for entry in self.shards for pair in entry.files.items())


def read_manifest(path: Path) -> Manifest:
    """The manifest in the file `path` of a run folder, which may come from anybody; `check_files` checks its names.

    Raises:
        ArtefactError: it is a link out of the folder.
        StorageError: it is missing, of another format, or not what a run writes.
    """
    return read_object(path, Manifest)


def check_files(manifest: Manifest, path: Path) -> None:
    """Raise unless the files that a manifest names are those of its shards.

    Args:
        manifest: what the file holds.
        path: of the file, for messages.

    Raises:
        ArtefactError: a name leads out of the folder.
        StorageError: a shard stands there twice, or a name is none that a run writes.
    """
    numbers = [entry.number for entry in manifest.shards]
    if len(set(numbers)) < len(numbers):
        raise StorageError("run_damaged", f"{path} names a shard twice; score again")
    for entry in manifest.shards:
        for kind, file in entry.files.items():
            if Path(file.file).name != file.file or file.file in (".", "..") or set("\\\0") & set(file.file):
                raise ArtefactError(
                    "file_refused",
                    f"{path} names the file {file.file!r:.100}, which is not in the run folder; nothing of it is read",
                )
            if file.file != (expected := file_name(kind, entry.number)):
                raise StorageError(
                    "run_damaged", f"{path} names {file.file!r:.100} where {expected} is written; score again"
                )


def file_name(kind: str, number: int) -> str:
    """The name of the file that holds one kind of table of shard `number`."""
    return f"{kind}-{number:05d}.parquet"


def check_records(folder: Path) -> None:
    """Raise where something is in `folder` under the name of a record or of the lock that is no regular file.

    Raises:
        StorageError: there is.
    """
    for name in (LOCK, RECORD, MANIFEST):
        check_target(folder / name)


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
