"""A stopped run resumes, refuses to become another run, and is written by one process at a time."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import datetime, tzinfo
from pathlib import Path
from subprocess import PIPE

import numpy as np
import pytest
from checks.faults import contents
from helpers.forks import forked
from helpers.problems import inputs
from helpers.processes import LIMIT, some_kills, started
from helpers.resumed import SHARD, classifier, run

from brittle.cli.commands import main
from brittle.store.folder import LOCK


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brittle.run.job.SHARD", SHARD)


def test_kills_lose_nothing() -> None:
    """A sample of the kills of `make test-faults`: at random moments, and at steps."""
    steps, (random_ones, at_steps) = some_kills("score", 3, 3, 0, 8, 13, 17, -1)
    assert steps > 45
    assert (random_ones["kills"], at_steps["kills"]) == (3, 5)
    for counts in (random_ones, at_steps):
        assert {name for name, count in counts.items() if count} == {"kills"}, counts


def test_a_finished_run_costs_no_pass(tmp_path: Path) -> None:
    finished = run(tmp_path / "run")
    model = classifier()
    again = run(tmp_path / "run", model=model)
    assert model.passes == 0
    assert again.scores.equals(finished.scores)
    assert again.record == finished.record


def test_only_missing_shards_are_computed(tmp_path: Path) -> None:
    examined = classifier()
    complete = run(tmp_path / "whole", model=examined)
    run(tmp_path / "run")
    before = contents(tmp_path / "run")
    damaged = tmp_path / "run" / "scores-00001.parquet"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    model = classifier()
    again = run(tmp_path / "run", model=model)
    assert again.scores.equals(complete.scores)
    assert contents(tmp_path / "run") == before
    account = complete.record.account
    examination = examined.passes - account.passes - account.check_passes
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    checks = manifest["shards"][1]["account"]["check_passes"]
    assert model.passes == examination + SHARD * 5 + checks


def test_a_run_that_fails_in_its_first_shard_leaves_none(tmp_path: Path) -> None:
    """The same command line then works once the mistake is mended."""

    def fails(*progress: int) -> None:
        raise RuntimeError("first shard")

    with pytest.raises(RuntimeError):
        run(tmp_path / "run", resume=False, progress=fails)
    assert not (tmp_path / "run").exists()
    run(tmp_path / "run", resume=False)


def test_the_clock_and_the_times_of_files_decide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the parts of a run the clock jumps back by decades and ahead by a century; times of files do, too."""
    run(tmp_path / "whole")
    for year in (1971, 2126, 1980):

        class Clock(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:
                return datetime(year, 1, 1, tzinfo=tz)  # noqa: B023 - read within the loop

        monkeypatch.setattr("brittle.run.record.datetime", Clock)
        monkeypatch.setenv("TZ", "Asia/Kathmandu" if year > 2000 else "America/St_Johns")
        run(tmp_path / "run")
        (tmp_path / "run" / "scores-00001.parquet").unlink()  # the next part computes it again
        for place, file in enumerate(sorted((tmp_path / "run").iterdir())):
            os.utime(file, (place * 10**9, place * 10**9))
    run(tmp_path / "run")
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def command_line(folder: Path, *options: str) -> list[str]:
    return ["score", f"{folder / 'net.py'}:make", str(folder / "data.npz"), "--out", str(folder / "run"), *options]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text(
        "import torch\n\n\ndef make():\n    torch.manual_seed(0)\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 4)).eval()\n"
    )
    np.savez(tmp_path / "data.npz", x=inputs(20).numpy(), y=np.arange(20) % 4)
    return tmp_path


def test_the_command_line_resumes_on_request_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = command_line(project, "--scores", "logit_margin")
    assert main(line) == 0
    assert main(line) == 7
    assert "--resume" in capsys.readouterr().err
    assert main([*line, "--resume"]) == 0
    assert main([*line, "--resume", "--seed", "3"]) == 5
    assert "seed 0 there, 3 now" in capsys.readouterr().err


def test_a_run_over_chosen_points_resumes_with_these_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, ids = command_line(project, "--scores", "logit_margin", "--resume"), project / "ids.txt"
    ids.write_text("3\n7\n11\n")
    assert main([*line, "--ids", str(ids)]) == 0
    (project / "same.txt").write_text("11\r\n3\r\n\r\n7\r\n3")
    assert main([*line, "--ids", str(project / "same.txt")]) == 0
    assert "nothing was computed" in capsys.readouterr().err
    ids.write_text("3\n7\n12\n")
    assert main([*line, "--ids", str(ids)]) == 5
    assert "data.ids_sha256 " in capsys.readouterr().err
    assert main(line) == 5
    assert "data.points 3 there, 20 now" in capsys.readouterr().err


SIGNALLED = """
import os, sys, threading, time
from pathlib import Path
from brittle.cli.commands import run

lock, number = Path(sys.argv.pop(1)), int(sys.argv.pop(1))

def send():
    while not lock.exists():
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(os.getpid(), number)

threading.Thread(target=send, daemon=True).start()
run()
"""
"""The command, in a process that gets a signal half a second after it opens its run."""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_signals_stop_cleanly(number: signal.Signals, code: int, project: Path) -> None:
    line = command_line(project, "--scores", "monte_carlo", "--draws", "5000000", "--quiet")
    process = forked(SIGNALLED, str(project / "run" / LOCK), str(int(number)), *line)
    assert process.returncode == code
    assert "--resume" in process.stderr
    assert "Traceback" not in process.stderr
    assert not (project / "run" / LOCK).exists()


def test_an_interrupt_inside_exec_ends_with_the_exit_code(project: Path) -> None:
    """Python itself would end by the signal there, for instance while it makes a dataclass."""
    (project / "interrupted.py").write_text("def make():\n    exec('raise KeyboardInterrupt')\n")
    line = command_line(project, "--scores", "monte_carlo", "--quiet")
    line[1] = f"{project / 'interrupted.py'}:make"
    with started([sys.executable, "-m", "brittle", *line], stderr=PIPE) as running:
        _, errors = running.communicate(timeout=LIMIT)
    assert running.returncode == 130
    assert "--resume" in errors
