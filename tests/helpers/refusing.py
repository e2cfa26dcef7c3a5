"""A system that refuses to look at files: a folder closed to the user, and a disk or a mount that fails once."""

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
"""Functions of `os` by which files are looked at and changed."""


def refuse(patch: pytest.MonkeyPatch, refused: Callable[[Path], int]) -> None:
    """Let every call for a path fail with the error number that `refused` gives for it; with 0 it is let through."""

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
    """Close a folder as one of mode 000 is to everybody but the superuser: it is seen, and nothing in it."""
    refuse(patch, lambda path: errno.EACCES if folder in path.parents else 0)


def fail_once(patch: pytest.MonkeyPatch, folder: Path, turn: int) -> Callable[[], bool]:
    """Let the call with the number `turn` for a path in a folder, or for it, fail; gives whether it was made."""
    turns = iter(range(turn + 1))
    made: list[Path] = []

    def refused(path: Path) -> int:
        if path != folder and folder not in path.parents:
            return 0
        if next(turns, None) != turn:
            return 0
        made.append(path)
        return errno.EIO

    refuse(patch, refused)
    return lambda: bool(made)
