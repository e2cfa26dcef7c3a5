"""What `make test-processors` runs, and what it says of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from checks import processors


def test_what_is_left_out_is_there() -> None:
    files = set(processors.TESTS.rglob("test_*.py"))
    assert {path.stem for path in files} > processors.SAME_EVERYWHERE_TOO
    assert {path.parent.name for path in files} > processors.SAME_EVERYWHERE
    chosen = set(processors.chosen())
    assert chosen < files
    assert {path.parent.name for path in chosen} >= {"detector", "doctor", "measure", "noise", "orthant", "scores"}
    left_out = {path.parent.name for path in files - chosen if path.stem not in processors.SAME_EVERYWHERE_TOO}
    assert left_out <= processors.SAME_EVERYWHERE | {"files"}


@pytest.mark.parametrize(("code", "last"), [(1, "1 failed, 4 passed in 1s"), (2, "1 error in 1s"), (3, "")])
def test_a_run_that_fails_is_told(
    code: int, last: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever failed: a test, its file, or pytest; a processor that lacks something is no failure."""
    monkeypatch.setattr(processors, "can", lambda capability: capability == "avx2")
    monkeypatch.setattr(processors, "run", lambda *arguments: (code, f"FAILED tests/test_x.py::test_y - no\n{last}"))
    assert processors.main([]) == 1
    said = capsys.readouterr().out
    assert said.count("has it not: skipped") == 2
    assert said.count("FAILED tests/test_x.py::test_y") == 2
    monkeypatch.setattr(processors, "run", lambda *arguments: (0, "4 passed, 1 deselected in 1s"))
    assert processors.main(["avx2"]) == 0
    assert processors.main(["sse"]) == 2


def test_a_capability_that_pytorch_does_not_take_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = {"none": ("SSE41", "SSE4_2")}
    monkeypatch.setattr(processors, "CAPABILITIES", kernels)
    assert not processors.can("none")


def test_a_run_is_told_its_kernels_and_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def record(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        seen.update(options, command=command)
        return subprocess.CompletedProcess(command, 0, "7 passed in 1s\n")

    monkeypatch.setattr(subprocess, "run", record)
    code, said = processors.run("avx512", 2, [tmp_path / "test_x.py"], tmp_path)
    assert (code, processors.counted(said)) == (0, {"passed": 7, "failed": 0})
    assert seen["env"].items() >= {"ATEN_CPU_CAPABILITY": "avx512", "OMP_NUM_THREADS": "2"}.items()
    assert {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "MKL_ENABLE_INSTRUCTIONS": "AVX512"}.items() <= seen["env"].items()
    assert str(tmp_path / "test_x.py") in seen["command"]
