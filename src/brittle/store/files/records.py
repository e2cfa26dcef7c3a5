"""JSON files of a run folder, read without trust: of one declared type, or refused with the place that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from brittle.errors import ArtefactError, MissingRunError, StorageError
from brittle.store.files.nearby import nearby
from brittle.store.files.strict_json import WHOLE, FormatProblem, Limits, convert, parse_json, read_text

MOST_TEXT = Limits(size=1 << 25, characters=1 << 20, printable=False)
"""A record holds what people called their files, and the names of many classes."""

T = TypeVar("T")


def read_object(path: Path, kind: type[T], check: Callable[[Mapping[str, Any], Path], None]) -> T:
    """The dataclass `kind` that the file `path` of a run folder holds.

    Args:
        path: the file.
        kind: what it holds.
        check: called with the JSON object and the folder before the object is converted.

    Raises:
        StorageError: it is missing, cannot be read, is too large, or is not of this kind; the place is named.
        ArtefactError: it is a link out of the folder.
    """
    check_present(path)
    check_inside(path)
    try:
        found = parse_json(read_text(path, MOST_TEXT), MOST_TEXT)
        if not isinstance(found, dict):
            raise FormatProblem(f"must be a JSON object; found a value of type {type(found).__name__}", WHOLE)
        if "format" in found:
            check(found, path.parent)
        return convert(kind, found, MOST_TEXT)
    except OSError as error:
        raise StorageError("unreadable", f"{path} cannot be read ({error.strerror})") from error
    except FormatProblem as error:
        where = {"": f"{path}:", WHOLE: f"{path}"}.get(error.where, f"{error.where} in {path}")
        raise StorageError("run_damaged", f"{where} {error.problem}; score again") from error


def check_present(path: Path) -> None:
    """Raise where a file of a run folder is missing.

    Raises:
        StorageError: it is.
    """
    if not path.is_file():
        folder = path.parent
        meant = nearby(folder, lambda one: (one / path.name).is_file())
        raise MissingRunError("no_run", f"{path} is missing; {folder} is not a run folder{meant}")


def check_inside(path: Path) -> None:
    """Raise where a file is a link that leads out of its folder.

    Raises:
        ArtefactError: it is.
    """
    if path.is_symlink() and path.resolve().parent != path.parent.resolve():
        raise ArtefactError(
            "file_refused",
            f"{path} is a link to {path.resolve()}, out of the run folder; copy the file itself into the folder",
        )
