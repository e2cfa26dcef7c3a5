"""Data and runs that lie in an object store, such as `s3://bucket/folder`: paths of universal-pathlib over fsspec.

They have the methods of `pathlib.Path`. What differs is here: how a path is told from one of this machine, what stands
for the digest of a file, and how a part of a file is read by one request.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from brittle.errors import DataError

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/{1,3}(?P<rest>[^/].*)")
"""A place in a store; `pathlib` leaves one slash of several. A drive of Windows has a single letter."""


def located(path: str | os.PathLike[str]) -> Path:
    """A path of this machine, or of a store where it begins with `scheme://`."""
    found = None if is_stored(path) else _URL.fullmatch(str(path))
    if found is None:
        return cast("Path", path) if is_stored(path) else Path(path)
    if found["scheme"] in ("file", "local"):
        return Path("/", found["rest"])
    url = f"{found['scheme']}://{found['rest']}"
    try:
        from upath import UPath

        place = cast("Path", UPath(url))
        _store(place)  # finds the package
    except (ImportError, ValueError) as error:
        raise DataError(
            "not_installed",
            f"{url} lies in a store whose package is not there ({error}); pip install 'brittle[cloud]', which has that "
            f"of s3://, or the package of fsspec for {found['scheme']}://",
        ) from error
    try:
        with reaching(place):
            place.exists()
    except OSError as error:
        raise DataError("unreadable", f"{url} cannot be reached: {error}") from error
    return place


@contextmanager
def reaching(path: object) -> Iterator[None]:
    """Make an `OSError` of the errors that stores have of their own: no credentials, no route, no such bucket."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if not is_stored(path):
            raise
        raise OSError(f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.200}") from error


def is_stored(path: object) -> bool:
    """Whether a path is one of a store."""
    return hasattr(path, "fs")


def stored_digest(path: Path) -> str | None:
    """The sha256 of the entity tag that the store keeps of a file, and of its size; None where it keeps none. Nothing
    of the file is read: a tag is another where the content is."""
    with reaching(path):
        known = _store(path).info(_name(path))
    tag = known.get("ETag") or known.get("etag")
    return None if tag is None else hashlib.sha256(f"{tag} {known['size']}".encode()).hexdigest()


def open_whole(path: Path) -> BinaryIO:
    """A small file, by one request."""
    with reaching(path):
        return BytesIO(path.read_bytes()) if is_stored(path) else path.open("rb")


def write_whole(path: Path, content: bytes) -> None:
    """A file in a store, which has all of it or what was there before."""
    with reaching(path):
        _store(path).pipe_file(_name(path), content)


def read_part(path: Path, start: int, size: int) -> bytes:
    """Some bytes of a file, fewer where it ends, by one request."""
    if is_stored(path):
        with reaching(path):
            return _store(path).cat_file(_name(path), start=start, end=start + size)
    with path.open("rb") as stream:
        stream.seek(start)
        return stream.read(size)


def _store(path: Path) -> Any:
    return cast("Any", path).fs


def _name(path: Path) -> str:
    return cast("Any", path).path
