"""A second copy of a run folder, in an object store or on another disk, made while the run is written.

Every file is sent once it is whole here, those of a shard before the manifest that names them. So whenever either side
dies, the manifest of the copy names nothing but whole files, and a run goes on from either side.
"""

from __future__ import annotations

from brittle.errors import StorageError
from brittle.store.places import is_stored, located, place_of
from brittle.store.writing import make_folder


class Mirror:
    """The copy at `place`, a folder here or a place such as `s3://bucket/run`."""

    def __init__(self, place: str) -> None:
        self.place = located(place)
        if not is_stored(self.place):
            make_folder(self.place)

    def put(self, name: str, content: bytes) -> None:
        """Write a file: a reader sees all of it or what was there before."""
        path = self.place / name
        try:
            place_of(path).write(path, content)
        except OSError as error:
            raise StorageError(
                "unwritable",
                f"{path} cannot be written ({error}); what was written in the run folder is whole: go on with --resume",
            ) from error

    def get(self, name: str) -> bytes | None:
        """What a file holds; None where there is none."""
        try:
            with place_of(self.place).open(self.place / name) as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError("unreadable", f"{self.place / name} cannot be read ({error})") from error

    def names(self) -> set[str]:
        try:
            return place_of(self.place).names(self.place)
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise StorageError("unreadable", f"{self.place} cannot be read ({error})") from error
