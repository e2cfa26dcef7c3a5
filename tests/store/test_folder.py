"""Run folders: an interrupted write leaves only complete files, and one process writes at a time."""

from __future__ import annotations

import errno
import itertools
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE

import pytest
import torch
from checks.faults import contents
from helpers.places import VICTIM, run_in
from helpers.processes import started
from helpers.refusing import fail_once
from helpers.resumed import SHARD, run

import brittle
from brittle.errors import ModelError, ParameterError, StorageError
from brittle.store.folder import LOCK, RunFolder


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", SHARD)


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = run(tmp_path / "whole")
    real, calls_left = os.fsync, [10]

    def fsync(file: int) -> None:
        calls_left[0] -= 1
        if calls_left[0] < 0:
            raise OSError(28, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError) as caught:
        run(tmp_path / "run")
    assert caught.value.exit_code == 7
    assert not list((tmp_path / "run").glob(".*.tmp"))
    monkeypatch.setattr(os, "fsync", real)
    assert len(brittle.read_table(tmp_path / "run").points) == SHARD
    assert run(tmp_path / "run").scores.equals(complete.scores)


def test_a_file_gets_its_name_when_its_bytes_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write all bytes, then the name, then the folder, so that a power cut leaves complete files only.

    Folders that are made come first, each in the one above it, so that a power cut leaves the run.
    """
    steps: list[tuple[str, str, int]] = []
    fsync, replace = os.fsync, Path.replace

    def flushed(file: int) -> None:
        fsync(file)
        path = Path(f"/proc/self/fd/{file}").readlink()
        name = re.sub(r"\.[0-9a-f]{12}\.tmp$", ".TOKEN.tmp", path.name)
        steps.append(("flushed", name, 0 if path.is_dir() else os.fstat(file).st_size))

    def renamed(path: Path, target: Path) -> Path:
        steps.append(("named", target.name, path.stat().st_size))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", renamed)
    run(tmp_path / "new" / "deep" / "run", count=SHARD)
    sizes = [size for kind, _, size in steps if kind == "named"]
    record, shard = ["manifest.json", "run.json"], ["points-00000.parquet", "scores-00000.parquet", "manifest.json"]
    files = [*record, *shard, *record]
    assert all(sizes)
    folders = [("flushed", name, 0) for name in (tmp_path.name, "new", "deep")]
    assert steps == folders + [
        step
        for name, size in zip(files, sizes, strict=True)
        for step in (("flushed", f".{name}.TOKEN.tmp", size), ("named", name, size), ("flushed", "run", 0))
    ]


def test_remains_of_a_dead_process_are_removed(tmp_path: Path) -> None:
    run(tmp_path)
    content = contents(tmp_path)
    (tmp_path / ".scores-00007.parquet.tmp").write_bytes(b"half")
    (tmp_path / "scores-00007.parquet").write_bytes(b"half")
    (tmp_path / "report.html").write_text("mine")
    with RunFolder(tmp_path).open():
        pass
    assert (tmp_path / "report.html").read_text() == "mine"
    (tmp_path / "report.html").unlink()
    assert contents(tmp_path) == content


def test_a_shard_outside_the_folder_is_computed_again(tmp_path: Path) -> None:
    """Recompute even a shard outside that has the very bytes written."""
    run(tmp_path / "run")
    content = contents(tmp_path / "run")
    (tmp_path / "run" / "scores-00001.parquet").rename(tmp_path / "scores-00001.parquet")
    (tmp_path / "run" / "scores-00001.parquet").symlink_to(tmp_path / "scores-00001.parquet")
    run(tmp_path / "run")
    assert not (tmp_path / "run" / "scores-00001.parquet").is_symlink()
    assert contents(tmp_path / "run") == content


def test_shards_without_a_record_belong_to_no_run(tmp_path: Path) -> None:
    run(tmp_path / "run")
    (tmp_path / "run" / "run.json").unlink()
    with pytest.raises(StorageError):
        run(tmp_path / "run", resume=False)
    table = run(tmp_path / "run", seed=1)
    assert table.scores.equals(run(tmp_path / "other", seed=1).scores)


def test_a_folder_of_the_users_own_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ParameterError):
        run(tmp_path / "mine", seed=-1)
    with pytest.raises(ModelError):
        run(tmp_path / "mine", model=brittle.Classifier(torch.nn.Flatten(start_dim=0)))
    assert (tmp_path / "mine").is_dir()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    script = (
        "import sys, time; from brittle.store.folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).open():\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with started([sys.executable, "-c", script, str(tmp_path)], stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
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
        with RunFolder(tmp_path).open(), pytest.raises(StorageError), RunFolder(tmp_path).open():
            pass


@pytest.mark.parametrize(
    "put", [lambda path, victim: path.write_bytes(VICTIM), lambda path, victim: path.hardlink_to(victim)]
)
def test_a_file_with_the_name_of_the_lock_is_not_touched(put: Callable[[Path, Path], object], tmp_path: Path) -> None:
    """Keep the bytes and the name of a user's file that has the name of the lock."""
    victim, path = tmp_path / "victim", tmp_path / "run" / LOCK
    path.parent.mkdir()
    victim.write_bytes(b"")
    put(path, victim)
    content = path.read_bytes()
    with pytest.raises(StorageError) as caught:
        run_in(tmp_path)
    assert caught.value.code == "unwritable"
    assert path.read_bytes() == content
    assert sorted(path.parent.iterdir()) == [path]


def test_an_unreadable_file_is_refused_and_not_taken_for_lost(tmp_path: Path) -> None:
    """Refuse a disk that fails at any single call of opening a run to resume it, and change none of its files."""
    run(tmp_path / "run")
    content, refusals = contents(tmp_path / "run"), list[StorageError]()
    for turn in itertools.count():
        with pytest.MonkeyPatch.context() as patch:
            has_failed = fail_once(patch, tmp_path / "run", turn)
            try:
                with RunFolder(tmp_path / "run").open() as folder:
                    assert folder.record is not None
                    assert len(folder.shards) == 3
            except StorageError as error:
                refusals.append(error)
        (tmp_path / "run" / LOCK).unlink(missing_ok=True)  # where that is the call that fails
        assert contents(tmp_path / "run") == content
        if not has_failed():
            break
    assert len(refusals) > 30
    assert {error.code for error in refusals} == {"unreadable", "unwritable"}
    assert all("Input/output error" in str(error) for error in refusals)


HOLDING = (
    "import errno, fcntl, sys, time\n"
    "def flock(file, operation): raise OSError(int(sys.argv[2]), 'no locks')\n"
    "fcntl.flock = flock\n"
    "from brittle.store.folder import RunFolder\n"
    "with RunFolder(sys.argv[1]).open():\n    print('held', flush=True)\n    time.sleep(60)\n"
)


@pytest.fixture(params=[errno.ENOLCK])
def no_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Simulate a mount without locks, and return the error number that it answers."""

    def flock(file: object, operation: int) -> None:
        raise OSError(request.param, "no locks")

    monkeypatch.setattr("fcntl.flock", flock)
    return request.param


@pytest.mark.parametrize("no_locks", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP], indirect=True)
def test_a_mount_without_locks_holds_runs(no_locks: int, tmp_path: Path) -> None:
    complete = run(tmp_path / "run")
    assert not (tmp_path / "run" / LOCK).exists()
    for _ in range(2):
        with RunFolder(tmp_path / "run").open(), pytest.raises(StorageError), RunFolder(tmp_path / "run").open():
            pass
    assert run(tmp_path / "run").scores.equals(complete.scores)


def test_without_locks_only_a_live_writer_blocks(no_locks: int, tmp_path: Path) -> None:
    """Keep and name the lock of a live process; free the lock of a killed one."""
    complete = run(tmp_path)
    with started([sys.executable, "-c", HOLDING, str(tmp_path), str(no_locks)], stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        content = (tmp_path / LOCK).read_bytes()
        with pytest.raises(StorageError, match=f"process {process.pid} on ") as caught:
            run(tmp_path)
        assert caught.value.code == "locked"
        assert (tmp_path / LOCK).read_bytes() == content
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fcntl.flock", lambda file, operation: None)  # this machine has locks, the other has none
            with pytest.raises(StorageError, match=f"process {process.pid} on "):
                run(tmp_path)
        assert (tmp_path / LOCK).read_bytes() == content
        process.kill()
    assert (tmp_path / LOCK).exists()
    assert run(tmp_path).scores.equals(complete.scores)
    assert not (tmp_path / LOCK).exists()


def test_a_writer_on_another_host_is_never_taken_for_dead(no_locks: int, tmp_path: Path) -> None:
    (tmp_path / LOCK).write_bytes(b"1\nelsewhere\n")
    with pytest.raises(StorageError, match=r"process 1 on elsewhere.*remove") as caught:
        run(tmp_path)
    assert caught.value.code == "locked"
    assert (tmp_path / LOCK).read_bytes() == b"1\nelsewhere\n"
