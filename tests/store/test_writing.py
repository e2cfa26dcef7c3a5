"""Writing of files: complete or not at all, and over nothing but a regular file."""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import brittle
from brittle.errors import StorageError
from brittle.store.writing import nearby, replacing, write

SOURCE = Path(brittle.__file__).parent

MAKERS = ("write_text", "write_bytes", "mkdir", "makedirs", "touch", "mkstemp", "symlink_to", "hardlink_to")
"""Functions that make a file, by their names."""


def test_every_file_is_written_by_one_function() -> None:
    """Nothing else makes or opens a file for writing, but for records within an archive and a temporary file for
    CatBoost."""
    calls = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            texts = [
                leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
            ]
            writes = name == "open" and any(set(text) <= set("wax+b") and set(text) & set("wax+") for text in texts)
            of_the_system = isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in ("os.open", "os.fdopen")
            if writes or of_the_system or name in MAKERS:
                calls.add((path.relative_to(SOURCE).as_posix(), ast.unparse(node.func)))
    assert calls == {
        ("extensions/trees/tree_file.py", "file.write_text"),
        ("store/writing.py", "os.fdopen"),
        ("store/writing.py", "os.open"),
        ("store/writing.py", "path.mkdir"),
    }


def write_half(path: Path, ending: Callable[[], None]) -> None:
    """Write half of a file, and then call `ending`."""
    with replacing(path) as file:
        file.write(b"half")
        ending()


def stop() -> None:
    raise KeyboardInterrupt


def test_a_file_is_complete_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(KeyboardInterrupt):
        write_half(path, stop)
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt):
        write_half(path, stop)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_replaced_file_keeps_its_permissions_and_hard_links(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"before")
    path.chmod(0o640)
    (tmp_path / "other").hardlink_to(path)
    write(path, b"after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (path.read_bytes(), (tmp_path / "other").read_bytes()) == (b"after", b"before")


def test_a_pipe_made_in_between_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(StorageError, match="f is no file"):
        write_half(path, lambda: os.mkfifo(path))
    assert list(tmp_path.iterdir()) == [path]


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 127 + "x")
    write(path, b"x")
    assert list(tmp_path.iterdir()) == [path]


def test_close_names_come_first_and_others_are_listed(tmp_path: Path) -> None:
    for name in ("weights.safetensors", "data.npz", "x.npz", "a.npz", "b.npz"):
        (tmp_path / name).touch()
    arrays = lambda path: path.suffix == ".npz"  # noqa: E731
    assert nearby(tmp_path / "dta.npz", arrays) == f"; did you mean {tmp_path / 'data.npz'}?"
    assert nearby(tmp_path / "qqqq.npz", arrays) == f"; {tmp_path.name} holds a.npz, b.npz, data.npz, x.npz"
    assert nearby(tmp_path / "qqqq", lambda path: path.is_dir()) == ""
    assert nearby(tmp_path / "no" / "x.npz", arrays) == f"; there is no folder {tmp_path / 'no'}"
