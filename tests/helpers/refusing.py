"""A system that refuses access to files: a folder closed to the user, and a disk or a mount that fails once."""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CALLS = ("stat", "lstat", "open", "listdir", "scandir", "readlink", "mkdir", "rmdir", "unlink", "replace")
"""Functions of `os` that read and change files."""


def refuse(patch: pytest.MonkeyPatch, refused: Callable[[Path], int]) -> None:
    """Let every call for a path fail with the error number that `refused` returns for it; 0 lets it through."""

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def guard(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            if isinstance(path, int):
                return call(path, *arguments, **options)
            if number := refused(Path(os.fsdecode(path)).absolute()):
                raise OSError(number, os.strerror(number), os.fsdecode(path))
            return call(path, *arguments, **options)

        return guard

    for name in CALLS:
        patch.setattr(os, name, guarded(getattr(os, name)))
    patch.setattr(io, "open", guarded(io.open))
    patch.setattr(builtins, "open", io.open)
    access = os.access
    patch.setattr(os, "access", lambda path, mode, **options: not refused(Path(path)) and access(path, mode, **options))


def close(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Close a folder as mode 000 does for everybody but the superuser: it is visible, and nothing in it."""
    refuse(patch, lambda path: errno.EACCES if folder in path.parents else 0)


def fail_once(patch: pytest.MonkeyPatch, folder: Path, turn: int) -> Callable[[], bool]:
    """Let call number `turn` for a folder or a path in it fail, and return a function that says whether it happened."""
    turns = iter(range(turn + 1))
    failures: list[Path] = []

    def refused(path: Path) -> int:
        if path != folder and folder not in path.parents:
            return 0
        if next(turns, None) != turn:
            return 0
        failures.append(path)
        return errno.EIO

    refuse(patch, refused)
    return lambda: bool(failures)
