"""Data and runs in an object store, such as `s3://bucket/folder`: paths of universal-pathlib over fsspec."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from brittle.errors import DataError
from brittle.store.places import Disk


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
