"""Files in an object store, such as `s3://bucket/folder`, and a second copy of a run folder, there or on another disk.

Every file of the copy is sent once it is complete here, the files of a shard before the manifest that names them.
Whenever either side dies, the manifest of the copy names complete files alone, and a run can resume from either side.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from brittle.errors import DataError, StorageError
from brittle.store import folder
from brittle.store.folder import MANIFEST, RECORD, Manifest, file_name
from brittle.store.places import Disk, is_stored, located, place_of
from brittle.store.record import RunRecord, parse_object, storage_errors
from brittle.store.writing import make_folder, write


class ObjectStore(Disk):
    """Files in a store, each read and written in one request."""

    def locate(self, url: str) -> Path:
        """Return the path of a URL, once its store answers.

        Raises:
            DataError: the package of the store is missing, or the store cannot be reached.
        """
        try:
            from upath import UPath

            path = cast("Path", UPath(url))
            _file_system(path)  # finds the package
        except (ImportError, ValueError) as error:
            scheme = url.partition(":")[0]
            raise DataError(
                "not_installed",
                f"{url} lies in a store whose package is missing ({error}); pip install 'brittle[cloud]', which has "
                f"that of s3://, or the package of fsspec for {scheme}://",
            ) from error
        try:
            with reaching():
                path.exists()
        except OSError as error:
            raise DataError("unreadable", f"{url} cannot be reached: {error}") from error
        return path

    def digest(self, path: Path) -> str:
        """Return the sha256 of a file's size and the entity tag that the store keeps of it, which changes with the
        content. The file is read only where the store has no tag."""
        with reaching():
            facts = _file_system(path).info(_name(path))
            tag = facts.get("ETag") or facts.get("etag")
            if tag is not None:
                return hashlib.sha256(f"{tag} {facts['size']}".encode()).hexdigest()
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()

    def open(self, path: Path) -> BinaryIO:
        with reaching():
            return BytesIO(path.read_bytes())

    def read_part(self, path: Path, start: int, size: int) -> bytes:
        with reaching():
            return _file_system(path).cat_file(_name(path), start=start, end=start + size)

    def write(self, path: Path, content: bytes) -> None:
        """Write a file at once: a reader sees the new file or the old one."""
        with reaching():
            _file_system(path).pipe_file(_name(path), content)


STORE = ObjectStore()


@contextmanager
def reaching() -> Iterator[None]:
    """Turn the errors of stores (no credentials, no route, no such bucket) into an `OSError`."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.200}") from error


def _file_system(path: Path) -> Any:
    return cast("Any", path).fs


def _name(path: Path) -> str:
    return cast("Any", path).path


T = TypeVar("T")


class MirroredFolder(folder.RunFolder):
    """A run folder that writes every file to `mirror`, too, a folder here or a place such as `s3://bucket/run`. If both
    hold the same run, each gets its missing shards from the other."""

    def __init__(self, path: str | os.PathLike[str], mirror: str) -> None:
        super().__init__(path)
        self.mirror = located(mirror)
        if not is_stored(self.mirror):
            make_folder(self.mirror)

    def check_free(self) -> None:
        super().check_free()
        if self._get(MANIFEST) is not None:
            raise folder.exists_error(self.mirror)

    def _begin(self, expected: RunRecord | None) -> None:
        record = self._read(RECORD, RunRecord)
        folder.check_same(self.mirror, record, self.record or expected, ("in the mirror", "here"))
        super()._begin(expected)
        manifest = self._read(MANIFEST, Manifest)
        if record is not None and manifest is not None:
            self._fetch(manifest)
        if (self.path / RECORD).exists():
            self._send(manifest)

    def _fetch(self, manifest: Manifest) -> None:
        """Fetch the shards that only the mirror has; the manifest comes last."""
        for entry in manifest.shards:
            if entry.number not in self.shards:
                files = {file_name(kind, entry.number): file for kind, file in entry.files.items()}
                contents = {name: self._get(name) or b"" for name in files}
                if all(folder.ShardFile.of(contents[name]) == file for name, file in files.items()):
                    for name, content in contents.items():  # damaged or lost shards are computed again
                        write(self.path / name, content)
                    self.shards[entry.number] = entry
        if self.record is None:
            write(self.path / RECORD, self._get(RECORD) or b"")
        write(self.path / MANIFEST, folder.as_bytes(self._manifest))

    def _send(self, manifest: Manifest | None) -> None:
        """Send the shards that the mirror, with this manifest, lacks, and then the manifest."""
        with storage_errors(self.mirror), reaching():
            names = {path.name for path in self.mirror.iterdir()} if self.mirror.exists() else set[str]()
        for entry in self.shards.values():
            for name in (file_name(kind, entry.number) for kind in entry.files):
                if manifest is None or entry not in manifest.shards or name not in names:
                    self._put(name, (self.path / name).read_bytes())
        self._commit_manifest()
        self._put(RECORD, (self.path / RECORD).read_bytes())

    def _commit(self, name: str, content: bytes) -> None:
        super()._commit(name, content)
        self._put(name, content)

    def _put(self, name: str, content: bytes) -> None:
        path = self.mirror / name
        try:
            (STORE.write if is_stored(path) else write)(path, content)
        except OSError as error:
            raise StorageError(
                "unwritable",
                f"{path} cannot be written ({error}); the files in the run folder are sound: go on with --resume",
            ) from error

    def _get(self, name: str) -> bytes | None:
        """Read a file of the mirror; None where it is missing."""
        path = self.mirror / name
        with storage_errors(path), suppress(FileNotFoundError), place_of(path).open(path) as file:
            return file.read()
        return None

    def _read(self, name: str, kind: type[T]) -> T | None:
        content = self._get(name)
        return None if content is None else parse_object(content.decode(errors="replace"), self.mirror / name, kind)
