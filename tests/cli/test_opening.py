"""Mistakes about the model are reported before data are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from brittle.cli.commands import main

MISTAKES = {
    "a mistyped file of code": (["./nett.py:make"], "nett.py", 3),
    "a mistyped archive": (["net.pt2"], "net.pt2", 3),
    "no function": (["net.py"], "net.py", 2),
    "a pickle": (["net.pt"], "net.pt", 6),
    "mistyped weights": (["./net.py:make", "--weights", "w.safetensors"], "w.safetensors", 3),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_about_the_model_precedes_the_data(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("raise SystemExit('this was run')")
    Path("net.pt").write_bytes(b"\x80\x04.")
    Path("data.npz").write_text("whoever reads these data finds that they are damaged")
    (model, *options), path, code = MISTAKES[mistake]
    assert main(["score", model, "data.npz", *options, "--out", "run"]) == code
    assert path in capsys.readouterr().err


def test_missing_data_are_reported_before_the_model_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("raise SystemExit('this was run')")
    assert main(["score", "./net.py:make", "data.npz", "--out", "run"]) == 3
    assert "no_such_path: data.npz does not exist" in capsys.readouterr().err
