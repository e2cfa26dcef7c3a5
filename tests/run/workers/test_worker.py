"""A worker, seen from outside: what it says is checked, and it ends with its parent."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from subprocess import DEVNULL, PIPE

import numpy as np
import pytest
from helpers.crews import COUNT, NETWORK, line, run
from helpers.processes import started

from brittle.errors import BrittleError
from brittle.run.workers.crew import Crew
from brittle.run.workers.worker import Worker, command_of
from brittle.store.account import Account


def test_what_a_worker_raises_is_raised(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).random((COUNT, 12), dtype=np.float32)
    x[600, 0] = 7.0  # outside the bounds, beyond what the examination looks at
    np.savez(project / "data.npz", x=x)
    assert run(project, "run", monkeypatch, "--workers", "1") == 3
    assert run(project, "again", monkeypatch) == 3


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
    assert run(project, "run", monkeypatch, "--workers", "1") == 3
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
        "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)\n"
        "child.stdin.write(json.dumps({'shard': 0, 'lost': {}, 'only': None}) + chr(10))\n"
        "child.stdin.flush()\n"
        "hello, begun = child.stdout.readline(), child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with started(
        [sys.executable, "-S", "-c", code, *command_of(line(project, "run"))], stdout=PIPE, stdin=DEVNULL
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert Path(f"/proc/{child}").exists()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


def test_a_worker_that_answers_for_another_shard_is_refused() -> None:
    answer = {"done": {"number": 1, "account": asdict(Account()), "files": {}}}
    code = f"print({json.dumps({'hello': {}})!r}, flush=True); input(); print({json.dumps(answer)!r}, flush=True)"
    with pytest.raises(BrittleError, match="gave shard 1 where 0 was asked for") as caught:
        list(Crew([sys.executable, "-c", code], 1).shards([0, 1, 2]))
    assert caught.value.code == "worker_differs"
