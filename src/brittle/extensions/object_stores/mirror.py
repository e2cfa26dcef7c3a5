"""A second copy of a run folder, in an object store or on another disk, made while the run is written.

Every file is sent once it is whole here, those of a shard before the manifest that names them. So whenever either side
dies, the manifest of the copy names nothing but whole files, and a run goes on from either side.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TypeVar

from brittle.errors import StorageError
from brittle.extensions.object_stores.places import STORE, reaching
from brittle.store.folder import (
    MANIFEST,
    RECORD,
    Manifest,
    RunFolder,
    ShardFile,
    as_bytes,
    check_same,
    exists_error,
    file_name,
)
from brittle.store.places import is_stored, located, place_of
from brittle.store.record import RunRecord, parse_object, storage_errors
from brittle.store.writing import make_folder, write

T = TypeVar("T")


class MirroredFolder(RunFolder):
    """A run folder whose every file is written to `mirror`, too, a folder here or a place such as `s3://bucket/run`,
    after it was written here. Of the same run in both, each gets the shards that it lacks from the other."""

    def __init__(self, path: str | os.PathLike[str], mirror: str) -> None:
        super().__init__(path)
        self.mirror = located(mirror)
        if not is_stored(self.mirror):
            make_folder(self.mirror)

    def check_free(self) -> None:
        super().check_free()
        if self._get(MANIFEST) is not None:
            raise exists_error(self.mirror)

    def _begin(self, expected: RunRecord | None) -> None:
        record = self._read(RECORD, RunRecord)
        check_same(self.mirror, record, self.record or expected, ("in the mirror", "here"))
        super()._begin(expected)
        manifest = self._read(MANIFEST, Manifest)
        if record is not None and manifest is not None:
            self._fetch(manifest)
        if (self.path / RECORD).exists():
            self._send(manifest)

    def _fetch(self, manifest: Manifest) -> None:
        """Take over the shards of the mirror that are not here; the manifest comes last."""
        for entry in manifest.shards:
            if entry.number not in self.shards:
                files = {file_name(kind, entry.number): file for kind, file in entry.files.items()}
                contents = {name: self._get(name) or b"" for name in files}
                if all(ShardFile.of(contents[name]) == file for name, file in files.items()):
                    for name, content in contents.items():  # what is damaged or lost is computed again
                        write(self.path / name, content)
                    self.shards[entry.number] = entry
        if self.record is None:
            write(self.path / RECORD, self._get(RECORD) or b"")
        write(self.path / MANIFEST, as_bytes(self._manifest))

    def _send(self, manifest: Manifest | None) -> None:
        """Send what the mirror, with this manifest, lacks of the shards that are here, and then the manifest."""
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
                f"{path} cannot be written ({error}); what was written in the run folder is whole: go on with --resume",
            ) from error

    def _get(self, name: str) -> bytes | None:
        """The content of a file of the mirror; None where there is none."""
        path = self.mirror / name
        with storage_errors(path), suppress(FileNotFoundError), place_of(path).open(path) as file:
            return file.read()
        return None

    def _read(self, name: str, kind: type[T]) -> T | None:
        """The record in a file of the mirror; None where there is none."""
        content = self._get(name)
        return None if content is None else parse_object(content.decode(errors="replace"), self.mirror / name, kind)
