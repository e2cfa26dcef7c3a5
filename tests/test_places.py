"""Links, pipes and devices in every place that is written: nothing is written through them, and none is waited for."""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.places import PLACES, THINGS, VICTIM, Place, known_detector, known_run, look, run_in

import brittle
from brittle.cli import main
from brittle.errors import StorageError
from brittle.store.files.lock import Lock
from brittle.store.files.writing import replacing, write

SOURCE = Path(brittle.__file__).parent


@pytest.mark.parametrize(
    ("place", "thing"),
    [pytest.param(place, thing, id=f"{place.name}-{thing}") for place in PLACES for thing in place.things],
)
def test_nothing_but_a_regular_file_is_written(place: Place, thing: str, tmp_path: Path) -> None:
    try:
        seen = look(place, THINGS[thing], tmp_path)
    except PermissionError:
        pytest.skip("devices are made by root")
    assert seen.harm == ""
    if place.removed and thing != "folder":
        assert seen.code is None
    else:
        assert seen.code in ("no_regular_file", "no_folder", "unwritable")
        assert f"out/{place.file} " in seen.sentence
        assert "; " in seen.sentence  # what to do


MAKERS = ("write_text", "write_bytes", "mkdir", "makedirs", "touch", "mkstemp", "symlink_to", "hardlink_to")
"""What makes a file, by its name."""


def test_every_file_is_written_by_one_function() -> None:
    """Nothing else in the package makes or opens a file for writing, but for the lock and records within an archive."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            texts = [
                one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            writes = name == "open" and any(set(one) <= set("wax+b") and set(one) & set("wax+") for one in texts)
            of_the_system = isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in ("os.open", "os.fdopen")
            if writes or of_the_system or name in MAKERS:
                found.add((path.relative_to(SOURCE).as_posix(), ast.unparse(node.func)))
    assert found == {
        ("store/files/writing.py", "os.fdopen"),
        ("store/files/writing.py", "os.open"),
        ("store/files/writing.py", "path.mkdir"),
        ("store/files/lock.py", "os.open"),
        ("data/copies.py", "archive.open"),
        ("run/workers/service.py", "os.fdopen"),  # the standard output of a worker
    }


# The lock.


FOREIGN = {
    "somebody's file": (lambda path, victim: path.write_bytes(VICTIM), "holds something else than a lock"),
    "a long file": (lambda path, victim: path.write_bytes(bytes(9999)), "holds something else than a lock"),
    "another record": (lambda path, victim: path.write_text('{"pid": 1}'), "holds something else than a lock"),
    "a second name": (lambda path, victim: path.hardlink_to(victim), "is a file with 2 names"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_lock_that_is_none_is_not_written_over(kind: str, tmp_path: Path) -> None:
    """Somebody's file under the name of the lock keeps its bytes, also where the run is refused."""
    put, said = FOREIGN[kind]
    victim, path = tmp_path / "victim", tmp_path / "run" / ".lock"
    path.parent.mkdir()
    victim.write_bytes(b"")
    put(path, victim)
    before = path.read_bytes()
    with pytest.raises(StorageError, match=f"{said}, so it is not written over") as caught:
        run_in(tmp_path)
    assert caught.value.code == "no_lock"
    assert path.read_bytes() == before
    assert victim.read_bytes() == b""
    assert sorted(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", bytes(60), b'{"pid": 1, "host": "h", "boot": null}'])
def test_a_lock_that_was_left_behind_is_taken(content: bytes, tmp_path: Path) -> None:
    """Also one that a power cut left empty or full of zeros."""
    (tmp_path / ".lock").write_bytes(content)
    with Lock(tmp_path):
        assert b'"pid"' in (tmp_path / ".lock").read_bytes()
    assert not (tmp_path / ".lock").exists()


def test_a_lock_that_became_a_link_in_between_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at and what is opened may be two things."""
    (tmp_path / "victim").write_bytes(VICTIM)
    (tmp_path / ".lock").symlink_to(tmp_path / "victim")
    monkeypatch.setattr("brittle.store.files.lock.check_target", lambda path: None)
    with pytest.raises(StorageError, match="cannot be written"), Lock(tmp_path):
        pass
    (tmp_path / ".lock").unlink()
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(StorageError, match="is no regular file"), Lock(tmp_path):
        pass
    assert (tmp_path / "victim").read_bytes() == VICTIM


# The function that writes.


def interrupted(path: Path, ending: Callable[[], None]) -> None:
    """Write half of a file, and then something else happens."""
    with replacing(path) as file:
        file.write(b"half")
        ending()


def stop() -> None:
    raise KeyboardInterrupt


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(KeyboardInterrupt):
        interrupted(path, stop)
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt):
        interrupted(path, stop)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_replaced_keeps_its_permissions_and_its_other_names(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"before")
    path.chmod(0o640)
    (tmp_path / "other").hardlink_to(path)
    write(path, b"after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (path.read_bytes(), (tmp_path / "other").read_bytes()) == (b"after", b"before")


def test_what_comes_in_between_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(StorageError, match="f is a pipe"):
        interrupted(path, lambda: os.mkfifo(path))
    assert list(tmp_path.iterdir()) == [path]


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 127 + "x")
    write(path, b"x")
    assert list(tmp_path.iterdir()) == [path]


# Folders that the user names may be links.


def test_a_folder_that_the_user_names_may_be_a_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "run").symlink_to("real")
    run_in(tmp_path)
    assert (tmp_path / "real" / "run.json").is_file()
    assert main(["verify", str(tmp_path / "run")]) == 0
    known_detector().save(tmp_path / "run" / "detector.json")
    assert (tmp_path / "real" / "detector.json").is_file()


def test_a_folder_that_is_a_link_to_nothing_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").symlink_to("nothing")
    assert main(["score", "absent.pt2", "absent.npz", "--out", str(tmp_path / "run")]) == StorageError.exit_code
    assert "is a link to nothing, which is not there; make it first" in capsys.readouterr().err


def test_the_run_of_the_demo_is_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder that the user names may be a link, the one in it may not; that is said before anything is trained."""
    monkeypatch.setattr("brittle.cli.digits.prepare", lambda folder: pytest.fail("it is trained"))
    (tmp_path / "somebody").mkdir()
    (tmp_path / "run").symlink_to("somebody")
    assert main(["demo", "--out", str(tmp_path)]) == StorageError.exit_code
    assert "run is a link to somebody, so files would be written there; name that folder" in capsys.readouterr().err


def test_files_of_others_in_the_folder_of_a_run_stay(tmp_path: Path) -> None:
    """Only what a run names is taken for a leftover of a run."""
    others = ["notes.txt", ".notes.tmp", "points-of-view.parquet", "scores-1.parquet", ".report.html.tmp"]
    for name in others:
        (tmp_path / name).write_bytes(VICTIM)
    known_run().save(tmp_path)
    assert all((tmp_path / name).read_bytes() == VICTIM for name in others)
