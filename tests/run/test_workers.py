"""Processes side by side write the same bytes, survive kills, and leave out the rows that kill them."""

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
from subprocess import DEVNULL, PIPE
from typing import Any

import numpy as np
import pytest
from checks.faults import contents
from helpers.processes import started

import brittle
from brittle.cli import main
from brittle.errors import BrittleError, ClusterError, ParameterError
from brittle.run.workers import crew
from brittle.run.workers.crew import Crew
from brittle.run.workers.worker import Worker, command_of
from brittle.store.folder import PackedShard, RunFolder

NETWORK = """
import os, signal, time
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(12, 3)

    def forward(self, x):
        poisoned = (x.flatten(1)[:, 0] == 0.123).any()
        if poisoned and "POISON" in os.environ and "--as-worker" in open("/proc/self/cmdline").read():
            os.kill(os.getpid(), signal.SIGSEGV)
        return self.layer(x.flatten(1))


def make():
    print("a model that talks")
    return Net().eval()
"""

COUNT = 700
"""Points: three shards of the size that a run has."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return prepare(tmp_path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one worker."""
    place = prepare(tmp_path_factory.mktemp("alone"))
    with pytest.MonkeyPatch.context() as patch:
        assert run(place, "run", patch, "--workers", "1") == 0
    return place / "run"


def prepare(place: Path) -> Path:
    (place / "net.py").write_text(NETWORK)
    x = np.random.default_rng(0).random((COUNT, 12), dtype=np.float32)
    x[300, 0] = 0.123
    np.savez(place / "data.npz", x=x, y=np.arange(COUNT) % 3)
    return place


def line(project: Path, name: str, *options: str) -> list[str]:
    scores = ["--scores", "moments", "logit_margin", "--draws", "4", "--quiet"]
    return [
        "score",
        f"{project / 'net.py'}:make",
        str(project / "data.npz"),
        "--out",
        str(project / name),
        *scores,
        *options,
    ]


def run(project: Path, name: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    arguments = line(project, name, *options)
    monkeypatch.setattr(sys, "argv", ["brittle", *arguments])
    return main(arguments)


def same(one: Path, other: Path) -> bool:
    return contents(one) == contents(other)


def test_three_workers_write_the_bytes_of_one(alone: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(project, "three", monkeypatch, "--workers", "3") == 0
    assert same(alone, project / "three")
    assert len(brittle.read_table(project / "three").points) == COUNT
    one, three = (brittle.read_table(place).provenance for place in (alone, project / "three"))
    assert one["account"] == three["account"]


def test_any_order_of_the_shards(alone: Path, project: Path) -> None:
    workers = Crew(command_of(line(project, "parts")), 1)
    with RunFolder.open(project / "parts") as folder:
        entries = [folder.enter(shard) for shard in workers.shards([2, 0, 1])]
        folder.begin({})
    assert [entry["number"] for entry in entries] == [2, 0, 1]
    assert same(alone, project / "parts")


def test_a_row_that_kills_its_worker_is_left_out(alone: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row kills whoever computes it; all others get the numbers that they have without it."""
    monkeypatch.setenv("POISON", "1")
    assert run(project, "run", monkeypatch, "--workers", "2", "--batch-size", "32") == 4
    found, whole = (brittle.read_table(place) for place in (project / "run", alone))
    dead = [row for row in found.points.to_pylist() if row["status"] == "worker_died"]
    assert [row["row"] for row in dead] == [300]
    assert "signal 11" in dead[0]["detail"]
    names = {row["point"] for row in dead}
    mine, theirs = ([row for row in table.scores.to_pylist() if row["point"] not in names] for table in (found, whole))
    assert len(mine) == 2 * (COUNT - 1)
    for own, other in zip(mine, theirs, strict=True):
        assert own["value"] == pytest.approx(other["value"], rel=1e-5, abs=1e-12)


def test_workers_that_are_killed_lose_nothing(alone: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    done = threading.Event()

    def kill_some() -> None:
        while len(killed) < 3 and not done.is_set():
            for child in children():
                if child not in killed and len(killed) < 3:
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
    assert len(killed) >= 2
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


def test_what_a_worker_raises_is_raised(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random((COUNT, 12), dtype=np.float32)
    x[600, 0] = 7.0  # outside the bounds, beyond what the examination looks at
    np.savez(project / "data.npz", x=x)
    assert run(project, "run", monkeypatch, "--workers", "2") == 3
    assert run(project, "again", monkeypatch) == 3


def lost(*arguments: Any) -> Generator[PackedShard]:
    """Workers that cannot be had."""
    raise ClusterError("cluster_unreachable", "nobody listens")
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


SCRIPTED = """
import json, os, signal, sys
from pathlib import Path

asked = Path(sys.argv[1])
print(json.dumps({"hello": {}}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    with asked.open("a") as log:
        log.write(line)
    print(json.dumps({"begun": [0, 1, 2, 3]}), flush=True)
    count = len(asked.read_text().splitlines())
    if count <= 2:
        os.kill(os.getpid(), signal.SIGKILL)
    shard = {"number": request["shard"], "account": request["lost"], "files": {}}
    print(json.dumps({"done": shard}), flush=True)
    if count == 6:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_row_is_blamed_for_a_kill_from_outside(tmp_path: Path) -> None:
    """A worker killed twice at one batch and healthy afterwards loses no row; nor does one that dies between shards."""
    (tmp_path / "worker.py").write_text(SCRIPTED)
    workers = Crew([sys.executable, str(tmp_path / "worker.py"), str(tmp_path / "asked")], 1)
    shards = list(workers.shards([0, 1, 2]))
    assert [shard.number for shard in shards] == [0, 1, 2]
    assert all(shard.account == {} for shard in shards)


@pytest.mark.parametrize("first", ["", '{"hello": {}}\n'])
def test_half_an_answer_is_a_death(first: str) -> None:
    code = f"import os, sys; sys.stdout.write({first!r}); sys.stdout.flush(); {first!r} and sys.stdin.readline(); "
    half = "sys.stdout.write('{\"beg'); sys.stdout.flush(); os._exit(3)"
    with pytest.raises(BrittleError) as caught:
        list(Crew([sys.executable, "-c", code + half], 1).shards([0]))
    assert caught.value.code == "workers_die"


def test_a_worker_that_falls_silent_and_lives_on_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.workers.worker.ENDING", 0.1)
    with pytest.raises(BrittleError, match="signal 9"):
        list(Crew([sys.executable, "-S", "-c", "import os, time; os.close(1); time.sleep(20)"], 1).shards([0]))


def test_a_worker_that_opens_something_else_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its data are exchanged between the start of the run and that of its workers; the field is named."""
    start = Worker.start

    def exchange(worker: Worker) -> None:
        x = np.random.default_rng(1).random((COUNT, 12), dtype=np.float32)
        np.savez(project / "data.npz", x=x, y=np.arange(COUNT) % 3)
        start(worker)

    monkeypatch.setattr(Worker, "start", exchange)
    assert run(project, "run", monkeypatch, "--workers", "2") == 3
    assert "worker_differs" in (said := capsys.readouterr().err)
    assert "data.sha256" in said
    assert not list((project / "run").glob("*.parquet"))


def test_a_worker_ends_with_its_parent(project: Path) -> None:
    """Even while it computes, when it neither reads nor writes."""
    (project / "net.py").write_text(
        NETWORK.replace(
            "        return self",
            "        time.sleep(60 * (len(x) > 8))  # not at the first points\n        return self",
        )
    )
    code = (
        "import json, subprocess, sys, time\n"
        "from brittle.run.workers.worker import command_of\n"
        "child = subprocess.Popen(command_of(sys.argv[1:]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
        "child.stdin.write(json.dumps({'shard': 0, 'lost': {}, 'only': None}) + chr(10))\n"
        "child.stdin.flush()\n"
        "hello, begun = child.stdout.readline(), child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with started([sys.executable, "-c", code, *line(project, "run")], stdout=PIPE, stdin=DEVNULL) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert Path(f"/proc/{child}").exists()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


def test_a_worker_that_answers_for_another_shard_is_refused() -> None:
    answer = {"done": {"number": 1, "account": {}, "files": {}}}
    code = f"print({json.dumps({'hello': {}})!r}, flush=True); input(); print({json.dumps(answer)!r}, flush=True)"
    with pytest.raises(BrittleError, match="gave shard 1 where 0 was asked for") as caught:
        list(Crew([sys.executable, "-c", code], 1).shards([0, 1, 2]))
    assert caught.value.code == "worker_differs"


def test_whatever_a_thread_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(worker: Worker, number: int) -> None:
        raise MemoryError

    monkeypatch.setattr(crew, "whole", fail)
    with pytest.raises(MemoryError):
        list(Crew(["true"], 2).shards([0, 1]))
