"""Processes side by side share the work of a command."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from studies.__main__ import main
from studies.beside import processes_beside
from studies.errors import StudyError
from studies.train.__main__ import main as train

OURS = "counter_of_runs"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that leaves what it was given in a file for each of its processes; it fails or waits where told to."""
    (tmp_path / f"{OURS}.py").write_text(
        "import os, sys, time, pathlib\n"
        "time.sleep(20 if 'wait' in sys.argv else 0)\n"
        "pathlib.Path(sys.argv[1], str(os.getpid())).write_text(' '.join(sys.argv[2:]))\n"
        "sys.exit(3 if 'fail' in sys.argv else 0)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return OURS


def test_one_that_fails_is_said(module: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="ended with 3"):  # noqa: SIM117
        with processes_beside(module, [str(tmp_path), "fail"], 2):
            pass


def test_a_command_that_is_told_to_end_stops_them_too(module: str, tmp_path: Path) -> None:
    done = tmp_path / "done"
    done.mkdir()
    with pytest.raises(SystemExit, match="143"), processes_beside(module, [str(done), "wait"], 2):
        os.kill(os.getpid(), signal.SIGTERM)
    assert not list(done.iterdir())
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("jobs", ["0", "-1", "two"])
@pytest.mark.parametrize("command", [main, train])
def test_a_number_of_processes_is_one_or_more(
    jobs: str, command: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        command(["--jobs", jobs])
    assert f"a number of processes is 1 or more, found {jobs}" in capsys.readouterr().err


def test_one_beside_measures_and_leaves_the_results(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["expected_change", "--shared", str(shared), "--out", str(tmp_path), "--size", "tiny"]
    assert main([*given, "--beside"]) == 0
    assert not (tmp_path / "expected_change" / "results").exists()
    assert "expected_change: linear/" in capsys.readouterr().out
    assert main(given) == 0
    assert "expected_change: linear/" not in capsys.readouterr().out  # nothing is done again
    assert (tmp_path / "expected_change" / "results").is_dir()
