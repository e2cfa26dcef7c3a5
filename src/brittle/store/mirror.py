"""A second copy of a run folder, in an object store or on another disk, made while the run is written.

Every file is sent once it is whole here, those of a shard before the manifest that names them. So whenever either side
dies, the manifest of the copy names nothing but whole files, and a run goes on from either side.
"""

from __future__ import annotations

from brittle.errors import StorageError
from brittle.store.places import is_stored, located, reaching, write_whole
from brittle.store.writing import make_folder, write


class Mirror:
    """The copy at `place`, a folder here or a place such as `s3://bucket/run`."""

    def __init__(self, place: str) -> None:
        self.place = located(place)
        if not is_stored(self.place):
            make_folder(self.place)

    def put(self, name: str, content: bytes) -> None:
        """Write a file: a reader sees all of it or what was there before."""
        path = self.place / name
        if not is_stored(path):
            write(path, content)
            return
        try:
            write_whole(path, content)
        except OSError as error:
            raise StorageError(
                "unwritable",
                f"{path} cannot be written ({error}); what was written in the run folder is whole: go on with --resume",
            ) from error

    def get(self, name: str) -> bytes | None:
        """What a file holds; None where there is none."""
        try:
            with reaching(self.place):
                return (self.place / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError("unreadable", f"{self.place / name} cannot be read ({error})") from error

    def names(self) -> set[str]:
        try:
            with reaching(self.place):
                return {path.name for path in self.place.iterdir()}
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise StorageError("unreadable", f"{self.place} cannot be read ({error})") from error
