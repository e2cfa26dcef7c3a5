"""Processes side by side write the same bytes, and survive kills."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from checks.faults import contents
from helpers.crews import COUNT, line, run

import brittle
from brittle.errors import BrittleError, ClusterError, ParameterError
from brittle.run.workers import crew
from brittle.run.workers.crew import Crew
from brittle.run.workers.worker import Worker, command_of
from brittle.store.folder import PackedShard, RunFolder

pytestmark = pytest.mark.xdist_group("crew")  # one run of one worker for all


def same(one: Path, other: Path) -> bool:
    return contents(one) == contents(other)


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_workers_write_the_bytes_of_one(
    count: int, alone: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(project, "several", monkeypatch, "--workers", f"{count}") == 0
    assert same(alone, project / "several")
    assert len(brittle.read_table(project / "several").points) == COUNT
    one, several = (brittle.read_table(place).record for place in (alone, project / "several"))
    assert one.account == several.account


def test_any_order_of_the_shards(alone: Path, project: Path) -> None:
    workers = Crew(command_of(line(project, "parts")), 1)
    with RunFolder.open(project / "parts") as folder:
        entries = [folder.enter(shard) for shard in workers.shards([2, 0, 1])]
        folder.begin(brittle.read_table(alone).record)
    assert [entry.number for entry in entries] == [2, 0, 1]
    assert same(alone, project / "parts")


def test_workers_that_are_killed_lose_nothing(alone: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    done = threading.Event()

    def kill_some() -> None:
        while len(killed) < 2 and not done.is_set():
            for child in children():
                if child not in killed and len(killed) < 2:
                    time.sleep(0.3)
                    with suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)
                        killed.append(child)
            time.sleep(0.05)

    killer = threading.Thread(target=kill_some)
    killer.start()
    try:
        assert run(project, "run", monkeypatch, "--workers", "2") == 0
    finally:
        done.set()
        killer.join()
    assert len(killed) == 2
    assert same(project / "run", alone)


def children() -> list[int]:
    """The worker processes of this one."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            worker = b"--as-worker" in (place / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and worker:
            found.append(int(place.name))
    return found


def lost(*arguments: Any) -> Generator[PackedShard]:
    """Workers that cannot be had."""
    raise ClusterError("cluster", "nobody listens")
    yield


def test_workers_that_cannot_be_had_leave_no_run_behind(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Crew, "shards", lost)
    assert run(project, "run", monkeypatch, "--workers", "2") == 3
    assert not (project / "run").exists()


def test_a_run_that_goes_on_has_not_finished(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first moment, and until the last of its shards is there."""
    project = alone.parent
    shutil.copytree(alone, project / "again")
    (project / "again" / "scores-00001.parquet").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Crew, "shards", lost)
        assert run(project, "again", monkeypatch, "--workers", "2", "--resume") == 3
    assert json.loads((project / "again" / "run.json").read_text())["finished"] is None
    assert run(project, "again", monkeypatch, "--workers", "1", "--resume") == 0
    assert same(alone, project / "again")


def test_a_run_does_not_finish_without_all_its_shards(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Crew, "shards", lambda *arguments: (shard for shard in ()))
    with pytest.raises(RuntimeError, match="0 of 3 shards"):
        run(project, "run", monkeypatch, "--workers", "2")


def test_a_worker_that_never_starts_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(BrittleError, match="exit code 3") as caught:
        list(Crew([sys.executable, "-c", "raise SystemExit(3)"], 1).shards([0]))
    assert caught.value.code == "workers_die"


@pytest.mark.parametrize("count", [0, -1, 10_000])
def test_how_many(count: int) -> None:
    with pytest.raises(ParameterError, match="workers must be between"):
        Crew(["true"], count)


def test_whatever_a_thread_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(worker: Worker, number: int) -> None:
        raise MemoryError

    monkeypatch.setattr(crew, "whole", fail)
    with pytest.raises(MemoryError):
        list(Crew(["true"], 2).shards([0, 1]))
