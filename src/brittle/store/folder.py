"""The run folder while it is written: one writer at a time, shard by shard, so that a kill at any moment loses none.

A file is written under a temporary name, flushed to the disk and renamed, and the folder is flushed; then the manifest
the same way. A shard exists when the manifest says so. Anything else in the folder under the names of a run was
left behind by a process that died, and is removed by the next one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, SoftFileLock, Timeout

from brittle.errors import ParameterError, ResumeError, StorageError
from brittle.store.record import FORMAT, UNDECISIVE, Account, RunRecord, differences, read_object, storage_errors
from brittle.store.schemas import SHARD_KINDS
from brittle.store.strict_json import Count, Digest, plain
from brittle.store.writing import check_target, make_folder, write

RECORD, MANIFEST, LOCK = "run.json", "manifest.json", ".lock"  # of a run, its shards and its writer

_SHARD = r"(points|scores|counterexamples)-\d{5,}\.parquet"
_STRAY = re.compile(rf"{_SHARD}|\.({_SHARD}|run\.json|manifest\.json)(\..*)?\.tmp", re.DOTALL)


@dataclass(frozen=True)
class ShardFile:
    """Entry of the manifest for a file of a shard, named by its kind and shard (`file_name`)."""

    bytes: Count
    sha256: Digest

    @classmethod
    def of(cls, content: bytes) -> ShardFile:
        return cls(len(content), hashlib.sha256(content).hexdigest())


@dataclass(frozen=True)
class ShardEntry:
    """A shard that exists."""

    number: Count
    account: Account
    points: ShardFile
    scores: ShardFile
    counterexamples: ShardFile | None = None

    @property
    def files(self) -> dict[str, ShardFile]:
        """Files of the shard, by the kind of their rows."""
        file_by_kind = {"points": self.points, "scores": self.scores, "counterexamples": self.counterexamples}
        return {kind: file for kind, file in file_by_kind.items() if file is not None}


@dataclass(frozen=True)
class Manifest:
    """The shards that exist, in order."""

    format: Literal[1]
    shards: tuple[ShardEntry, ...]

    def __post_init__(self) -> None:
        numbers = [entry.number for entry in self.shards]
        if numbers != sorted(set(numbers)):
            raise ParameterError(f"shards must stand in order, each once; found {numbers!r:.80}")

    @property
    def files(self) -> Iterator[tuple[str, str, ShardFile]]:
        """The files of all shards, each with the kind of its rows and its name."""
        for entry in self.shards:
            for kind, file in entry.files.items():
                yield kind, file_name(kind, entry.number), file


def file_name(kind: str, number: int) -> str:
    return f"{kind}-{number:05d}.parquet"


def strays(folder: Path, manifest: Manifest) -> list[Path]:
    """Return files named as a shard or a temporary file of a run that the manifest does not list, by name."""
    names = {name for _, name, _ in manifest.files}
    with storage_errors(folder):
        return sorted(path for path in folder.iterdir() if _STRAY.fullmatch(path.name) and path.name not in names)


@dataclass(frozen=True)
class Shard:
    """The rows of some consecutive points. `fit` is as in `brittle.run.job.Job`; None where that is not known."""

    number: int
    tables: Mapping[str, pa.Table]
    account: Account
    fit: int | None = None


class RunWriter(Protocol):
    """Takes the shards of a run: a `RunFolder`, or `brittle.run.scoring.Memory`, held open while it is written.
    The run must be `expected` where one is there. `commit` writes a shard, whose rows are safe after it returns."""

    @property
    def record(self) -> RunRecord | None: ...
    @property
    def shards(self) -> Mapping[int, ShardEntry | Shard]: ...
    def open(self, expected: RunRecord | None = None) -> AbstractContextManager[object]: ...
    def note(self, record: RunRecord) -> None: ...
    def commit(self, shard: Shard) -> None: ...
    def points(self, number: int) -> pa.Table: ...


class RunFolder:
    """A run folder. `shards` has the entry of each that exists, by number, once it is open."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.shards: dict[int, ShardEntry] = {}

    @contextmanager
    def open(self, expected: RunRecord | None = None) -> Iterator[Self]:
        """Open the folder, made if absent, for this process alone while the block runs.
        What a killed process left is removed, and shards that are not what was written count as missing."""
        with storage_errors(self.path):
            is_new = not self.path.exists()
        make_folder(self.path)
        try:
            _check_records(self.path)
            with _locked(self.path):
                with storage_errors(self.path):
                    self._begin(expected)
                yield self
        finally:
            if is_new:
                with suppress(OSError):
                    self.path.rmdir()  # where it is empty: a run that was refused leaves nothing behind

    def check_free(self) -> None:
        """Raise where the folder holds a run, or cannot be written."""
        check_writable(self.path)
        if any((self.path / name).exists() for name in (RECORD, MANIFEST)):
            raise exists_error(self.path)

    @property
    def record(self) -> RunRecord | None:
        with storage_errors(self.path / RECORD):
            return read_object(self.path / RECORD, RunRecord) if (self.path / RECORD).exists() else None

    def note(self, record: RunRecord) -> None:
        self._commit_manifest()
        self._commit(RECORD, as_bytes(record))

    def commit(self, shard: Shard) -> None:
        files = {}
        for kind, schema in SHARD_KINDS.items():
            if len(rows := shard.tables[kind]) or kind != "counterexamples":
                sink = pa.BufferOutputStream()
                pq.write_table(rows.cast(schema), sink, compression="zstd", write_page_checksum=True)
                content = sink.getvalue().to_pybytes()
                self._commit(file_name(kind, shard.number), content)
                files[kind] = ShardFile.of(content)
        self.shards[shard.number] = ShardEntry(shard.number, shard.account, **files)
        self._commit_manifest()

    def points(self, number: int) -> pa.Table:
        path = self.path / file_name("points", number)
        with storage_errors(path), pq.ParquetFile(path) as file:
            return file.read(columns=["label", "predicted"], use_threads=False)

    def _begin(self, expected: RunRecord | None) -> None:
        """Check which run is there, and find its shards."""
        check_same(self.path, self.record, expected)
        self.shards = {}
        if (self.path / MANIFEST).exists():
            manifest = read_object(self.path / MANIFEST, Manifest)
            if self.record is not None:  # without it nobody knows which run they are of
                self.shards = {entry.number: entry for entry in manifest.shards if self._is_whole(entry)}
        for path in strays(self.path, self._manifest):
            try:
                path.unlink()
            except OSError as error:
                raise StorageError(
                    "unwritable", f"{path} is in the way of a shard ({error.strerror}); remove it yourself"
                ) from error

    def _is_whole(self, entry: ShardEntry) -> bool:
        """Tell whether every file of a shard is what was written; one that cannot be read is not taken for lost."""
        for kind, file in entry.files.items():
            path = self.path / file_name(kind, entry.number)
            with storage_errors(path):
                if not path.is_file() or path.is_symlink() or ShardFile.of(path.read_bytes()) != file:
                    return False
        return True

    @property
    def _manifest(self) -> Manifest:
        return Manifest(FORMAT, tuple(self.shards[number] for number in sorted(self.shards)))

    def _commit_manifest(self) -> None:
        self._commit(MANIFEST, as_bytes(self._manifest))

    def _commit(self, name: str, content: bytes) -> None:
        advice = "what was written before is whole: make room and go on with --resume (resume=True)"
        write(self.path / name, content, advice)


def check_same(
    place: Path, record: RunRecord | None, expected: RunRecord | None, words: tuple[str, str] = ("there", "now")
) -> None:
    """Raise where a place holds another run, which would be written over."""
    if record is None or expected is None:
        return
    if fields := differences(record, expected, words, UNDECISIVE - {"part"}):
        raise ResumeError(
            "other_run", f"{place} holds another run: {'; '.join(fields)}; repeat its command, or choose another place"
        )


def exists_error(place: Path) -> StorageError:
    """Return the error for a place that holds a run where a new one is to be written."""
    return StorageError(
        "exists", f"{place} holds a run already; go on with it (--resume, resume=True) or choose another place"
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a run folder by a lock of the system; on a mount without locks by a file that names its owner.
    Nothing is opened but a regular file with one name that is empty or names a process: anybody who can write the
    folder can put a pipe or a link there."""
    path = folder / LOCK
    check_target(path)
    system = _holder(path) is None and _has_locks(folder)
    try:
        # In half a second the lock of a dead process is taken over.
        lock = FileLock(path, blocking=False) if system else SoftFileLock(path, timeout=0.5)
        lock.acquire()
    except Timeout as error:
        why = "" if system else f", as {path} says, because there are no locks on this mount"
        advice = "" if system else f"; where it died with its machine, remove {path}"
        holder = _holder(path) or "another process"
        raise StorageError(
            "locked", f"{folder} is being written by {holder}{why}; wait for it, or stop it first{advice}"
        ) from error
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be written ({error.strerror})") from error
    try:
        yield
    finally:
        if system:
            with suppress(OSError):  # Windows removes no open file
                path.unlink()
        lock.release()


_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP})  # of a mount without locks


def _has_locks(folder: Path) -> bool:
    """Tell whether the system locks files of a folder, by one that no other process knows."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:  # Windows
        return True
    try:
        with TemporaryFile(dir=folder) as file:
            flock(file, LOCK_EX | LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise StorageError("unwritable", f"{folder} cannot be written ({error.strerror}); choose another") from error
    return True


def _holder(path: Path) -> str | None:
    """Return the process that a lock names, in words; None where it names none."""
    with storage_errors(path):
        try:
            status = path.stat()
            words = path.read_text(encoding="ascii", errors="replace").split() if status.st_size else []
            process = SoftFileLock(path).pid if len(words) > 1 else None
        except FileNotFoundError:
            return None
    if status.st_nlink > 1 or (status.st_size and process is None):
        raise StorageError(
            "unwritable", f"{path} is no lock of a run and is not touched; choose another folder, or remove it"
        )
    return None if process is None else f"process {process} on {words[1]}"


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Raise where `folder`, or the nearest above it, cannot be written, or a record in it is no regular file."""
    path = Path(folder).absolute()
    ancestor = next((place for place in (path, *path.parents) if os.access(place, os.F_OK)), path)
    if not (ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK)):
        why = "cannot be written" if ancestor.is_dir() else "is no folder"
        raise StorageError("unwritable", f"{folder} cannot be made, because {ancestor} {why}; choose another")
    if path.is_symlink() and not path.exists():
        raise StorageError("unwritable", f"{folder} is a link to {path.readlink()}, which is not there; make it first")
    _check_records(path)


def _check_records(folder: Path) -> None:
    """Raise where a record or the lock in `folder` is not a regular file."""
    for name in (LOCK, RECORD, MANIFEST):
        check_target(folder / name)


def as_bytes(record: Any) -> bytes:
    return (json.dumps(plain(record), indent=1, sort_keys=True) + "\n").encode()
