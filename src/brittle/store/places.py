"""Places of files: a disk of this machine, or a store that an extension reaches, such as `s3://bucket/folder`.

A path in a store has the methods of `pathlib.Path`. What differs between the two are methods of `Disk`.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import BinaryIO, cast

from brittle.errors import DataError
from brittle.registry import load, missing

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/{1,3}(?P<rest>[^/].*)")
"""A place in a store; `pathlib` leaves one slash of several. A drive of Windows has a single letter."""


class Disk:
    """A disk of this machine; a store of an extension has methods of its own. Each raises `OSError` where it fails."""

    def digest(self, path: Path) -> str:
        """Return the sha256 of a file, in hexadecimal, or one that differs where the content differs."""
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def open(self, path: Path) -> BinaryIO:
        """Open a small file."""
        return path.open("rb")

    def read_part(self, path: Path, start: int, size: int) -> bytes:
        """Return some bytes of a file, fewer where it ends."""
        with path.open("rb") as stream:
            stream.seek(start)
            return stream.read(size)


_DISK = Disk()


def located(path: str | os.PathLike[str]) -> Path:
    """Return a path of this machine, or of a store where it begins with `scheme://`."""
    if is_stored(path):
        return cast("Path", path)
    url = _URL.fullmatch(str(path))
    if url is None:
        return Path(path)
    if url["scheme"] in ("file", "local"):
        return Path("/", url["rest"])
    text = f"{url['scheme']}://{url['rest']}"
    if lack := missing("place", "store"):
        raise DataError("not_installed", f"{text} {lack}")
    return load("place", "store").locate(text)


def is_stored(path: object) -> bool:
    """Tell whether a path is one of a store."""
    return hasattr(path, "fs")


def place_of(path: Path) -> Disk:
    """Return where a path lies."""
    return load("place", "store") if is_stored(path) else _DISK
