"""Processes side by side share the work of a command."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from studies.__main__ import main
from studies.beside import processes_beside
from studies.errors import StudyError

OURS = "counter_of_runs"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that writes a file for each of its processes, and fails or waits where it is told to."""
    (tmp_path / f"{OURS}.py").write_text(
        "import os, sys, time, pathlib\n"
        "time.sleep(20 if 'wait' in sys.argv else 0)\n"
        "pathlib.Path(sys.argv[1], str(os.getpid())).touch()\n"
        "sys.exit(3 if 'fail' in sys.argv else 0)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return OURS


def test_as_many_processes_run_as_are_asked_for(module: str, tmp_path: Path) -> None:
    done = tmp_path / "done"
    done.mkdir()
    with processes_beside(module, [str(done)], 2):
        pass
    assert len(list(done.iterdir())) == 2


def test_one_that_fails_is_said(module: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="1 of 1 processes side by side ended with 3"):  # noqa: SIM117
        with processes_beside(module, [str(tmp_path), "fail"], 1):
            pass


def test_they_are_stopped_where_the_first_one_raises(module: str, tmp_path: Path) -> None:
    done = tmp_path / "done"
    done.mkdir()
    with pytest.raises(KeyboardInterrupt), processes_beside(module, [str(done), "wait"], 1):
        raise KeyboardInterrupt
    assert not list(done.iterdir())


def test_a_study_by_two_processes_is_that_of_one(shared: Path, tmp_path: Path) -> None:
    """The same bytes, but for the seconds."""
    for name, jobs in (("one", "1"), ("two", "2")):
        given = ["--shared", str(shared), "--out", str(tmp_path / name), "--size", "tiny", "--jobs", jobs]
        assert main(["probabilistic_accuracy", *given]) == 0
    one, two = (tmp_path / name / "probabilistic_accuracy" / "results" for name in ("one", "two"))
    assert (one / "accuracy.parquet").read_bytes() == (two / "accuracy.parquet").read_bytes()
    assert pq.read_table(one / "times.parquet")["step"] == pq.read_table(two / "times.parquet")["step"]
