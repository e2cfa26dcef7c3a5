"""The manifest of a run: the shards that exist, and the files that hold them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brittle.errors import ArtefactError, StorageError
from brittle.store.account import Account
from brittle.store.files.lock import NAME
from brittle.store.files.records import read_object
from brittle.store.files.writing import check_target
from brittle.store.record import check_format

RECORD, MANIFEST = "run.json", "manifest.json"
"""What the record of a run and the list of its shards are called."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ShardFile:
    """A file of a shard, as the manifest names it.

    Attributes:
        file: its name in the run folder.
        bytes: its size.
        sha256: digest of its bytes, 64 hexadecimal digits.
    """

    file: str
    bytes: int
    sha256: str


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

    number: int
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
    return read_object(path, Manifest, check_format)


def check_files(manifest: Manifest, path: Path) -> None:
    """Raise unless the files that a manifest names are those of its shards.

    Args:
        manifest: what the file holds.
        path: of the file, for messages.

    Raises:
        ArtefactError: a name leads out of the folder.
        StorageError: a shard stands there twice, or a name, a size or a digest is none that a run writes.
    """
    numbers = [entry.number for entry in manifest.shards]
    if min(numbers, default=0) < 0 or len(set(numbers)) < len(numbers):
        raise StorageError("run_damaged", f"{path} does not number its shards one by one; score again")
    for entry in manifest.shards:
        for kind, file in entry.files.items():
            _check_file(file, kind, entry.number, path)


def file_name(kind: str, number: int, edition: int = 0) -> str:
    """The name of the file that holds one kind of table of shard `number`.

    A file that takes the place of another is the next edition, so that the other is whole until the manifest says so.
    """
    return f"{kind}-{number:05d}{f'-{edition}' if edition else ''}.parquet"


def edition_of(file: str, kind: str, number: int) -> int | None:
    """Which edition of the file of a shard has this name; None where it is no name of one."""
    if file == file_name(kind, number):
        return 0
    found = re.fullmatch(rf"{kind}-{number:05d}-([1-9][0-9]{{0,8}})\.parquet", file)
    return None if found is None else int(found[1])


def check_records(folder: Path) -> None:
    """Raise where something is in `folder` under the name of a record or of the lock that is no regular file.

    Raises:
        StorageError: there is.
    """
    for name in (NAME, RECORD, MANIFEST):
        check_target(folder / name)


def _check_file(found: ShardFile, kind: str, number: int, path: Path) -> None:
    file = found.file
    if found.bytes < 0 or not _DIGEST.fullmatch(found.sha256):
        raise StorageError("run_damaged", f"{path} does not say size and sha256 of {kind} {number}; score again")
    if Path(file).name != file or file in (".", "..") or "\\" in file or "\0" in file:
        raise ArtefactError(
            "file_refused",
            f"{path} names the file {file!r:.100}, which is not in the run folder; nothing of it is read",
        )
    if edition_of(file, kind, number) is None:
        expected = file_name(kind, number)
        raise StorageError("run_damaged", f"{path} names {file!r:.100} where {expected} is written; score again")
