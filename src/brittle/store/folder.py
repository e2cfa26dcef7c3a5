"""The run folder while it is written: one writer at a time, shard by shard, so that a kill at any moment loses none.

A file is written under a temporary name, flushed to the disk and renamed, and the folder is flushed; then the manifest
the same way. A shard exists when the manifest says so. Anything else in the folder under the names of a run was
left behind by a process that died, and is removed by the next one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from brittle.errors import StorageError
from brittle.store.account import Account
from brittle.store.record import FORMAT, RunRecord, read_record
from brittle.store.schemas import KINDS
from brittle.store.shards import (
    LOCK,
    MANIFEST,
    RECORD,
    Manifest,
    ShardEntry,
    ShardFile,
    check_records,
    file_name,
    is_stray,
    read_manifest,
)
from brittle.store.strict_json import plain
from brittle.store.writing import check_target, make_folder, write


@dataclass(frozen=True)
class PackedShard:
    """A shard as the bytes of its files, which is what another process hands over.

    Attributes:
        number: position of the shard in the run.
        account: what became of its points.
        files: the bytes of its file of every kind of table.
    """

    number: int
    account: Account
    files: Mapping[str, bytes]

    @classmethod
    def of(cls, number: int, tables: Mapping[str, pa.Table], account: Account) -> PackedShard:
        """The files of a shard; a kind that may be absent and has no rows has none."""
        kept = {kind: table for kind, table in tables.items() if len(table) or kind in ("points", "scores")}
        return cls(number, account, {kind: _parquet_bytes(kept[kind].cast(KINDS[kind])) for kind in kept})


class RunFolder:
    """A run folder, locked for the one who writes it.

    Attributes:
        path: the folder.
        shards: for each shard that exists its entry in the manifest, by number.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shards: dict[int, ShardEntry] = {}

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str]) -> Iterator[RunFolder]:
        """The folder `path`, made if absent, for this process alone while the block runs.

        What a killed process left behind is removed, and shards that are not what was written are dropped from the
        manifest, so they count as missing. `path` may be a link to a folder; what lies in it under the names of a run
        may not be links.

        Raises:
            StorageError: another process writes it, or it cannot be written or read.
        """
        folder = cls(Path(path))
        made = not folder.path.exists()
        make_folder(folder.path)
        try:
            check_records(folder.path)
            with _locked(folder.path):
                folder._recover()
                yield folder
        finally:
            if made:
                with suppress(OSError):
                    folder.path.rmdir()  # where it is empty: a run that was refused leaves nothing behind

    @property
    def record(self) -> RunRecord | None:
        """The record of the run that is in the folder, or None."""
        return read_record(self.path / RECORD) if (self.path / RECORD).exists() else None

    def begin(self, record: RunRecord) -> None:
        """Write the record of a run that starts or goes on."""
        self._commit_manifest()
        _commit(self.path, RECORD, _json_bytes(plain(record)))

    def commit(self, number: int, tables: Mapping[str, pa.Table], account: Account) -> None:
        """Write shard `number` and enter it in the manifest; after this returns its rows are safe.

        Raises:
            StorageError: the disk is full, or the folder cannot be written; what was committed before is safe.
        """
        self.enter(PackedShard.of(number, tables, account))

    def enter(self, shard: PackedShard) -> ShardEntry:
        """Write the files of a shard that was packed here or by another process, and enter it; gives its entry.

        Raises:
            StorageError: as `commit`.
        """
        files = {
            kind: _commit(self.path, file_name(kind, shard.number), shard.files[kind])
            for kind in KINDS
            if kind in shard.files
        }
        entry = ShardEntry(shard.number, shard.account, **files)
        self.shards[shard.number] = entry
        self._commit_manifest()
        return entry

    def points(self, number: int) -> pa.Table:
        """Labels and predictions of the points of a shard that exists."""
        with pq.ParquetFile(self.path / self.shards[number].points.file) as file:
            return file.read(columns=["label", "predicted"], use_threads=False)

    def finish(self, record: RunRecord) -> None:
        """Write the record of a run that is over; a part of a small one may have no shard."""
        if not self.shards:
            self._commit_manifest()
        _commit(self.path, RECORD, _json_bytes(plain(record)))

    def _recover(self) -> None:
        if (self.path / MANIFEST).exists():
            manifest = read_manifest(self.path / MANIFEST)
            if self.record is not None:  # without it nobody knows which run they are of
                self.shards = {entry.number: entry for entry in manifest.shards if self._is_whole(entry)}
        known = {file.file for entry in self.shards.values() for file in entry.files.values()}
        for path in self.path.iterdir():
            if is_stray(path.name) and path.name not in known:
                _remove(path)

    def _is_whole(self, entry: ShardEntry) -> bool:
        """Whether every file of a shard is what was written."""
        for kind, file in entry.files.items():
            path = self.path / file.file
            if file.file != file_name(kind, entry.number) or path.is_symlink() or not path.is_file():
                return False
            if hashlib.sha256(path.read_bytes()).hexdigest() != file.sha256:
                return False
        return True

    def _commit_manifest(self) -> None:
        manifest = Manifest(FORMAT, tuple(self.shards[number] for number in sorted(self.shards)))
        _commit(self.path, MANIFEST, _json_bytes(plain(manifest)))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a run folder; the lock is the system's, so one that a dead process left behind is free.

    Nothing is opened but a regular file that is empty and has one name: whoever can write a folder can put a pipe, a
    link or somebody else's file under the name of the lock.
    """
    path = folder / LOCK
    check_target(path)
    if path.exists() and (path.stat().st_size or path.stat().st_nlink > 1):
        raise StorageError(
            "unwritable",
            f"{path} is no lock of a run and is not touched; choose another folder, or remove it",
        )
    lock = FileLock(path, blocking=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise StorageError(
            "locked", f"{folder} is being written by another process; wait for it, or stop it first"
        ) from error
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be written ({error.strerror})") from error
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no open file
            path.unlink()
        lock.release()


def _commit(folder: Path, name: str, content: bytes) -> ShardFile:
    """Write `content` so that a reader sees all of it or none, whenever the process dies."""
    write(
        folder / name,
        content,
        "what was written before is whole: make room and go on with --resume (resume=True)",
    )
    return ShardFile(name, len(content), hashlib.sha256(content).hexdigest())


def check_free(folder: str | os.PathLike[str]) -> None:
    """Raise where `folder` holds a run, or cannot be written.

    Raises:
        StorageError: it does, or it cannot.
    """
    check_writable(folder)
    if any((Path(folder) / name).exists() for name in (RECORD, MANIFEST)):
        raise StorageError(
            "exists",
            f"{folder} holds a run already; go on with it (--resume, resume=True) or choose another folder",
        )


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Raise where `folder`, or the nearest folder above it that exists, cannot be written; nothing is made.

    The folder may be a link to one; `run.json`, `manifest.json` and the lock in it may be nothing but regular files.

    Raises:
        StorageError: it cannot.
    """
    path = Path(folder).absolute()
    there = next((place for place in (path, *path.parents) if os.access(place, os.F_OK)), path)
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        why = "cannot be written" if there.is_dir() else "is no folder"
        raise StorageError("unwritable", f"{folder} cannot be made, because {there} {why}; choose another")
    if path.is_symlink() and not path.exists():
        raise StorageError("unwritable", f"{folder} is a link to {path.readlink()}, which is not there; make it first")
    check_records(path)


def _remove(path: Path) -> None:
    """Remove a name from the folder; what a link leads to stays."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            "unwritable",
            f"{path} is in the way of a shard and cannot be removed ({error.strerror}); remove it yourself",
        ) from error


def _json_bytes(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _parquet_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue().to_pybytes()
