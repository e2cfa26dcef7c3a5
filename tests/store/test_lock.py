"""A run folder is written by one process at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

import pytest
from helpers.places import VICTIM, run_in
from helpers.processes import started
from helpers.resumed import run

from brittle.errors import StorageError
from brittle.store.folder import RunFolder
from brittle.store.shards import LOCK


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    holding = (
        "import sys, time; from brittle.store.folder import RunFolder\n"
        "with RunFolder.open(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with started([sys.executable, "-c", holding, str(tmp_path)], stdout=PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        began = time.monotonic()
        with pytest.raises(StorageError) as caught:
            run(tmp_path)
        assert caught.value.code == "locked"
        assert time.monotonic() - began < 5
    assert (tmp_path / LOCK).exists()
    run(tmp_path)  # the lock of a dead process is free
    assert not (tmp_path / LOCK).exists()


def test_a_folder_is_held_by_one_of_two_in_one_process(tmp_path: Path) -> None:
    for _ in range(2):
        with RunFolder.open(tmp_path), pytest.raises(StorageError), RunFolder.open(tmp_path):
            pass


@pytest.mark.parametrize(
    "put", [lambda path, victim: path.write_bytes(VICTIM), lambda path, victim: path.hardlink_to(victim)]
)
def test_a_lock_that_is_none_is_not_touched(put: Callable[[Path, Path], object], tmp_path: Path) -> None:
    """Somebody's file under the name of the lock keeps its bytes and its name."""
    victim, path = tmp_path / "victim", tmp_path / "run" / LOCK
    path.parent.mkdir()
    victim.write_bytes(b"")
    put(path, victim)
    before = path.read_bytes()
    with pytest.raises(StorageError) as caught:
        run_in(tmp_path)
    assert caught.value.code == "unwritable"
    assert path.read_bytes() == before
    assert sorted(path.parent.iterdir()) == [path]


def test_a_lock_that_became_a_link_in_between_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at and what is opened may be two things."""
    (tmp_path / "victim").write_bytes(b"")
    (tmp_path / LOCK).symlink_to(tmp_path / "victim")
    for looked in ("folder.check_target", "shards.check_target"):
        monkeypatch.setattr(f"brittle.store.{looked}", lambda path: None)
    with pytest.raises(StorageError), RunFolder.open(tmp_path):
        pass
