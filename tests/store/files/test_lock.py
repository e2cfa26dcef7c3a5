"""A run folder is written by one process at a time."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest
from helpers.places import VICTIM, run_in
from helpers.processes import started
from helpers.resumed import run

from brittle.errors import StorageError
from brittle.store.files.lock import NAME, Lock


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    holding = (
        "import sys, time; from pathlib import Path; from brittle.store.files.lock import Lock\n"
        "with Lock(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with started([sys.executable, "-c", holding, str(tmp_path)], stdout=PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        began = time.monotonic()
        with pytest.raises(StorageError, match=rf"process {other.pid} on ") as caught:
            run(tmp_path)
        assert caught.value.code == "locked"
        assert time.monotonic() - began < 5
    assert (tmp_path / NAME).exists()
    run(tmp_path)  # the lock of a dead process is free
    assert not (tmp_path / NAME).exists()


def test_a_lock_is_held_by_one_of_two_in_one_process(tmp_path: Path) -> None:
    with Lock(tmp_path):
        with pytest.raises(StorageError), Lock(tmp_path):
            pass
        assert json.loads((tmp_path / NAME).read_text())["pid"] == os.getpid()
    with Lock(tmp_path):
        pass


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
    assert caught.value.code == "unwritable"
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
