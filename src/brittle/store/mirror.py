"""A second copy of a run folder, in an object store or on another disk, made while the run is written.

Every file is sent once it is whole here, those of a shard before the manifest that names them. So whenever either side
dies, the manifest of the copy names nothing but whole files, and a run goes on from either side.
"""

from __future__ import annotations

from typing import Any

from brittle.errors import StorageError
from brittle.store.places import is_stored, located, write_whole
from brittle.store.writing import make_folder, write


class Mirror:
    """The copy at `place`, a folder here or a place such as `s3://bucket/run`.

    Raises:
        StorageError: it cannot be reached, written or read.
        DataError: the package that knows its store is not installed.
    """

    def __init__(self, place: str) -> None:
        self.place = located(place)
        if not is_stored(self.place):
            make_folder(self.place)

    def put(self, name: str, content: bytes) -> None:
        """Write a file: a reader sees all of it or what was there before."""
        path = self.place / name
        if is_stored(path):
            self._try(lambda: write_whole(path, content), f"{path} cannot be written")
        else:
            write(path, content)

    def get(self, name: str) -> bytes | None:
        """What a file holds; None where there is none."""
        path = self.place / name
        try:
            return self._try(path.read_bytes, f"{path} cannot be read")
        except FileNotFoundError:
            return None

    def _try(self, act: Any, failed: str) -> Any:
        try:
            return act()
        except FileNotFoundError:
            raise
        except Exception as error:  # each store has errors of its own
            reason = str(error).partition("\n")[0]
            raise StorageError(
                "unwritable",
                f"{failed} ({type(error).__name__}: {reason:.200}); what was written in the run folder is whole: go on "
                "with --resume",
            ) from error
