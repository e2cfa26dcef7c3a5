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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, SoftFileLock, Timeout

from brittle.errors import ParameterError, ResumeError, StorageError
from brittle.store.mirror import Mirror
from brittle.store.record import (
    FORMAT,
    UNDECISIVE,
    Account,
    RunRecord,
    differences,
    parse_object,
    read_object,
    storage_errors,
)
from brittle.store.schemas import SHARD_KINDS
from brittle.store.strict_json import Count, Digest, plain
from brittle.store.writing import check_target, make_folder, write

RECORD, MANIFEST, LOCK = "run.json", "manifest.json", ".lock"
"""What the record of a run, the list of its shards and the lock of its writer are called."""

_SHARD = r"(points|scores|counterexamples)-\d{5,}\.parquet"
_STRAY = re.compile(rf"{_SHARD}|\.({_SHARD}|run\.json|manifest\.json)(\..*)?\.tmp", re.DOTALL)
"""Names of shards, and of the files of a run while they are written."""


@dataclass(frozen=True)
class ShardFile:
    """What the manifest knows of a file of a shard, whose name is that of its kind and shard (`file_name`)."""

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
        """Its files, by the kind of their rows."""
        found = {"points": self.points, "scores": self.scores, "counterexamples": self.counterexamples}
        return {kind: file for kind, file in found.items() if file is not None}


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
    """What is named as a shard or a temporary file of a run, and is not in the manifest, by name."""
    known = {name for _, name, _ in manifest.files}
    with storage_errors(folder):
        return sorted(path for path in folder.iterdir() if _STRAY.fullmatch(path.name) and path.name not in known)


@dataclass(frozen=True)
class Shard:
    """The rows of some consecutive points. `fit` is as in `brittle.run.job.Job`; None where that is not known."""

    number: int
    tables: Mapping[str, pa.Table]
    account: Account
    fit: int | None = None


class RunFolder:
    """A run folder, locked for the one who writes it. `shards` has the entry of each that exists, by number; every file
    is written to the `mirror`, too, after it was written here."""

    def __init__(self, path: Path, mirror: Mirror | None = None) -> None:
        self.path, self.mirror = path, mirror
        self.shards: dict[int, ShardEntry] = {}

    @classmethod
    @contextmanager
    def open(
        cls,
        path: str | os.PathLike[str],
        mirror: Mirror | None = None,
        check: Callable[[RunRecord], None] = lambda record: None,
    ) -> Iterator[RunFolder]:
        """The folder `path`, made if absent, for this process alone while the block runs.

        Of the same run in it and in its `mirror`, each gets the shards that it lacks from the other.

        What a killed process left behind is removed, and shards that are not what was written are dropped from the
        manifest, so they count as missing. `path` may be a link to a folder; what lies in it under the names of a run
        may not be links. `check` is called with the record of the run that is there or in the mirror, before anything
        is written to either.
        """
        folder = cls(Path(path), mirror)
        with storage_errors(folder.path):
            made = not folder.path.exists()
        make_folder(folder.path)
        try:
            _check_records(folder.path)
            with _locked(folder.path):
                with storage_errors(folder.path):
                    if (known := folder.record or folder._mirrored) is not None:
                        check(known)
                    folder._check_same_run()
                    folder._recover()
                    folder._fetch()
                    folder._send()
                yield folder
        finally:
            if made:
                with suppress(OSError):
                    folder.path.rmdir()  # where it is empty: a run that was refused leaves nothing behind

    @property
    def record(self) -> RunRecord | None:
        with storage_errors(self.path / RECORD):
            return read_object(self.path / RECORD, RunRecord) if (self.path / RECORD).exists() else None

    def note(self, record: RunRecord) -> None:
        """Write the record of a run that starts, goes on or is over."""
        self._commit_manifest()
        self._commit(RECORD, _json(record))

    def commit(self, shard: Shard) -> None:
        """Write a shard and enter it in the manifest; after this returns its rows are safe."""
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
        """Labels and predictions of the points of a shard that exists."""
        path = self.path / file_name("points", number)
        with storage_errors(path), pq.ParquetFile(path) as file:
            return file.read(columns=["label", "predicted"], use_threads=False)

    def _recover(self) -> None:
        if (self.path / MANIFEST).exists():
            manifest = read_object(self.path / MANIFEST, Manifest)
            if self.record is not None:  # without it nobody knows which run they are of
                self.shards = {entry.number: entry for entry in manifest.shards if self._is_whole(entry)}
        for path in strays(self.path, self._manifest):
            try:
                path.unlink()
            except OSError as error:
                raise StorageError(
                    "unwritable",
                    f"{path} is in the way of a shard and cannot be removed ({error.strerror}); remove it yourself",
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
        self._commit(MANIFEST, _json(self._manifest))

    def _commit(self, name: str, content: bytes) -> None:
        write(
            self.path / name,
            content,
            "what was written before is whole: make room and go on with --resume (resume=True)",
        )
        if self.mirror is not None:
            self.mirror.put(name, content)

    def _fetch(self) -> None:
        """Take over the shards of the mirror that are not here; the manifest comes last."""
        if self.mirror is None or (content := self.mirror.get(MANIFEST)) is None or self._mirrored is None:
            return
        for entry in self._parsed(content).shards:
            if entry.number not in self.shards:
                files = {file_name(kind, entry.number): file for kind, file in entry.files.items()}
                found = {name: self.mirror.get(name) for name in files}
                if all(found[name] and ShardFile.of(found[name] or b"") == file for name, file in files.items()):
                    for name, content in found.items():  # what is damaged or lost is computed again
                        write(self.path / name, content or b"")
                    self.shards[entry.number] = entry
        if self.record is None:
            write(self.path / RECORD, self.mirror.get(RECORD) or b"")
        write(self.path / MANIFEST, _json(self._manifest))

    def _send(self) -> None:
        """Send to the mirror what it lacks of the shards that are here, and then the manifest."""
        if self.mirror is None or not (self.path / RECORD).exists():
            return
        there, names = self.mirror.get(MANIFEST), self.mirror.names()
        known = () if there is None else self._parsed(there).shards
        for entry in self.shards.values():
            for name in (file_name(kind, entry.number) for kind in entry.files):
                if entry not in known or name not in names:
                    self.mirror.put(name, (self.path / name).read_bytes())
        self._commit_manifest()
        self.mirror.put(RECORD, (self.path / RECORD).read_bytes())

    def _check_same_run(self) -> None:
        """Raise where the mirror holds another run, which would be written over."""
        other, own = self._mirrored, self.record
        if self.mirror is None or other is None or own is None:
            return
        if found := differences(own, other, ("here", "in the mirror"), UNDECISIVE - {"part"}):
            raise ResumeError(
                "other_run", f"{self.mirror.place} holds another run: {'; '.join(found)}; choose another place"
            )

    @property
    def _mirrored(self) -> RunRecord | None:
        """The record of the run in the mirror, or None."""
        if self.mirror is None or (text := self.mirror.get(RECORD)) is None:
            return None
        return parse_object(text.decode(errors="replace"), self.mirror.place / RECORD, RunRecord)

    def _parsed(self, manifest: bytes) -> Manifest:
        assert self.mirror is not None
        return parse_object(manifest.decode(errors="replace"), self.mirror.place / MANIFEST, Manifest)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a run folder. The lock is the system's, so one that a dead process left behind is free; where the mount has
    no locks, it is a file that names process, start and host, and is free where such a process of this host is no more.

    Nothing is opened but a regular file with one name that is empty or names a process: whoever can write a folder can
    put a pipe, a link or somebody else's file under the name of the lock.
    """
    path = folder / LOCK
    check_target(path)
    system = _holder(path) is None and _has_locks(folder)
    try:
        lock = FileLock(path, blocking=False) if system else SoftFileLock(path, timeout=_PATIENCE)
        lock.acquire()
    except Timeout as error:
        why = "" if system else f", as {path} says, because there are no locks on this mount"
        advice = "" if system else f"; where it died with its machine, remove {path}"
        raise StorageError(
            "locked",
            f"{folder} is being written by {_holder(path) or 'another process'}{why}; wait for it, or stop it "
            f"first{advice}",
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


_PATIENCE = 0.5
"""Seconds in which the lock of a dead process is taken over."""

_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP})
"""Error numbers of a mount without locks, such as Lustre without `flock`, NFS without its daemon and some of FUSE."""


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
    """The process that a lock names, in words; None where it names none.

    Raises:
        StorageError: it is somebody else's file.
    """
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


def check_free(folder: str | os.PathLike[str], mirror: Mirror | None = None) -> None:
    """Raise where `folder` or its mirror holds a run, or `folder` cannot be written."""
    check_writable(folder)
    if mirror is not None and mirror.get(MANIFEST) is not None:
        raise StorageError(
            "exists",
            f"{mirror.place} holds a run already; go on with it (--resume, resume=True) or choose another place",
        )
    if any((Path(folder) / name).exists() for name in (RECORD, MANIFEST)):
        raise StorageError(
            "exists", f"{folder} holds a run already; go on with it (--resume, resume=True) or choose another folder"
        )


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Raise where `folder`, or the nearest folder above it that exists, cannot be written; nothing is made. The folder
    may be a link to one; `run.json`, `manifest.json` and the lock in it may be nothing but regular files."""
    path = Path(folder).absolute()
    there = next((place for place in (path, *path.parents) if os.access(place, os.F_OK)), path)
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        why = "cannot be written" if there.is_dir() else "is no folder"
        raise StorageError("unwritable", f"{folder} cannot be made, because {there} {why}; choose another")
    if path.is_symlink() and not path.exists():
        raise StorageError("unwritable", f"{folder} is a link to {path.readlink()}, which is not there; make it first")
    _check_records(path)


def _check_records(folder: Path) -> None:
    """Raise where something is in `folder` under the name of a record or of the lock that is no regular file."""
    for name in (LOCK, RECORD, MANIFEST):
        check_target(folder / name)


def _json(record: Any) -> bytes:
    return (json.dumps(plain(record), indent=1, sort_keys=True) + "\n").encode()
