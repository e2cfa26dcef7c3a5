"""Errors for places that cannot be written, across rooms."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import torch
from helpers.problems import inputs, small_classifier

import brittle
from brittle.cli.commands import main
from brittle.errors import BrittleError
from brittle.scores import LogitMargin, Moments


def run(out: Path, *, resume: bool = False) -> brittle.Table:
    data = (inputs(20), torch.arange(20) % 4)
    return brittle.score(small_classifier(), data, [Moments(0.1, draws=4), LogitMargin()], out=out, resume=resume)


@pytest.mark.parametrize("options", [[], ["--resume"]], ids=["new", "resumed"])
def test_an_unwritable_place_is_said_before_the_model_is_loaded(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Load a model that takes a minute: the error comes before, names the place, and leaves nothing behind."""
    (tmp_path / "net.py").write_text("import time\n\ntime.sleep(60)\n")
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.iterdir())
    started = time.monotonic()
    out = tmp_path / "file" / "deeper" / "run"
    assert main(["score", f"{tmp_path / 'net.py'}:make", "absent.npz", "--out", str(out), *options]) == 7
    assert time.monotonic() - started < 5
    stderr = capsys.readouterr().err
    assert stderr.startswith("brittle: unwritable: ")
    assert str(out) in stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_closed_folder_is_unwritable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system refuse the folder, because nothing is closed to a superuser."""
    monkeypatch.setattr(os, "access", lambda place, mode: mode == os.F_OK and Path(place) == tmp_path)
    with pytest.raises(BrittleError, match=str(tmp_path)) as caught:
        run(tmp_path / "a" / "run")
    assert caught.value.code == "unwritable"
    assert list(tmp_path.iterdir()) == []
