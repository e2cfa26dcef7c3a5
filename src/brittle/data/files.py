"""Paths as text, digests of files, and the error for files that have changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from brittle.errors import DataError


def changed_error(path: str | None, found: str) -> DataError:
    """The error for data that are not what they were when they were opened."""
    return DataError("dataset", f"{path} changed since it was opened: {found}; open it again")


def path_text(path: str | os.PathLike[str]) -> str:
    """A path as text that can be stored: with forward slashes, bytes that are not UTF-8 as `\\xNN`.

    A backslash in a name is doubled, so that no two paths give one text.
    """
    return os.fsencode(Path(path).as_posix()).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def file_digest(path: Path) -> str:
    """The sha256 of a file, in hexadecimal.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError("unreadable", f"{path_text(path)} cannot be read: {error.strerror or error}") from error


def files_digest(root: Path, files: Sequence[Path]) -> str:
    """The sha256 over the sorted paths of `files`, relative to `root`, and their own sha256."""
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in files):
        digest.update(os.fsencode(name) + b"\0" + file_digest(path).encode() + b"\n")
    return digest.hexdigest()
