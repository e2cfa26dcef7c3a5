"""Paths as text, digests of files, and the files of a split."""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from brittle.errors import DataError
from brittle.store.places import is_stored, place_of


def changed_error(path: str | None, change: str) -> DataError:
    """Return the error for data that are not what they were when they were opened."""
    return DataError("dataset", f"{path} changed since it was opened: {change}; open it again")


def path_text(path: str | os.PathLike[str]) -> str:
    r"""Return a path as text to store: forward slashes, bytes that are no UTF-8 as `\xNN`, a backslash doubled."""
    text = str(path) if is_stored(path) else Path(path).as_posix()
    return os.fsencode(text).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def file_digest(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal; in a store that keeps a tag of it, of that."""
    try:
        return place_of(path).digest(path)
    except OSError as error:
        raise DataError("unreadable", f"{path_text(path)} cannot be read: {error.strerror or error}") from error


def files_digest(root: Path, files: Sequence[Path]) -> str:
    """Return the digest of the file `root`; of a folder the sha256 over the sorted paths of `files` and their own."""
    if root.is_file():
        return file_digest(root)
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in files):
        digest.update(os.fsencode(name) + b"\0" + file_digest(path).encode() + b"\n")
    return digest.hexdigest()


def choose_split(path: Path, splits: Sequence[str], requested: str | None) -> str:
    """Return the split that is asked for, or the only one."""
    if requested is None and len(splits) == 1:
        return splits[0]
    if requested is None or requested not in splits:
        names = ", ".join(path_text(name) if name else "(without a name)" for name in splits) or "none"
        fault = "no split was named" if requested is None else f"there is no split {requested!r:.40}"
        raise DataError("split", f"{path_text(path)} holds the splits {names}; {fault}: name one with --split (split=)")
    return requested


def refuse_split(path: Path, requested: str | None) -> None:
    """Raise where a split is asked for of data that have none."""
    if requested is not None:
        raise DataError("split", f"{path_text(path)} has no splits; leave out --split (split=)")


def split_files(path: Path, name: re.Pattern[str], requested: str | None) -> tuple[list[Path], str | None]:
    """Return the files to read in order, of the `requested` group `split` of their names, and their split."""
    if path.is_file():
        refuse_split(path, requested)
        match = name.fullmatch(path.name)
        return [path], (match and match["split"]) or None
    splits: dict[str, list[Path]] = {}
    for file in sorted(path.iterdir()):
        if file.is_file() and (match := name.fullmatch(file.name)):
            splits.setdefault(match["split"], []).append(file)
    split = choose_split(path, list(splits), requested)
    return splits[split], split or None
