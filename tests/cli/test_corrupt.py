"""The command `brittle corrupt`: copies that are scored like their originals, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.pictures import digits

import brittle
from brittle.cli import main
from brittle.data.corruptions import CORRUPTIONS

FACTORY = """
import torch
def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `net.py` and `data.npz`, 20 digits as uint8 with ids, as the current one."""
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(FACTORY)
    np.savez("data.npz", images=digits(20), labels=np.arange(20) % 10, ids=np.arange(100, 120))
    return tmp_path


def test_corrupt_then_score(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The copies are scored without the options that say how the original is read, and the points pair."""
    arguments = ["--kind", "gaussian_noise", "--severity", "1", "5", "--out", "copies", "--points", "12"]
    assert main(["corrupt", "data.npz", *arguments, "--scale-uint8"]) == 0
    said = capsys.readouterr()
    files = [f"copies/gaussian_noise-{severity}.npz" for severity in (1, 5)]
    assert said.out.split() == files
    assert said.err == f"brittle: 12 points, 2 copies; next: brittle score MODEL {files[0]}\n"
    choice = ["--scores", "logit_margin", "--quiet", "--points", "12"]
    assert main(["score", "./net.py:make", "data.npz", "--scale-uint8", "--out", "clean", *choice]) == 0
    clean = brittle.read_table("clean").wide()
    for file in files:
        assert main(["score", "./net.py:make", file, "--out", f"run-{Path(file).stem}", *choice]) == 0
        run = brittle.read_table(f"run-{Path(file).stem}").wide()
        assert run.index.tolist() == clean.index.tolist()
        for column in ("point", "label"):
            if column in clean:
                assert run[column].tolist() == clean[column].tolist()
        assert (run["logit_margin"] != clean["logit_margin"]).any()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--kind", "fog", "--severity", "1"], 2, "no corruption is called 'fog'; there are gaussian_noise"),
        (["--kind", "rotate", "--severity", "0"], 3, "the severity must be a whole number from 1 to 5; found 0"),
        (["--kind", "rotate", "--severity", "1.5"], 2, "--severity takes a whole number; found '1.5'"),
        (["--kind", "rotate"], 2, "--severity"),
        (["--kind", "saturate", "--severity", "1"], 3, "saturate changes colours only, and the images are grey"),
    ],
)
def test_refusals(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    assert main(["corrupt", "data.npz", "--scale-uint8", "--out", "copies", *arguments]) == code
    said = capsys.readouterr().err
    assert said.startswith("brittle: ")
    assert sentence in said
    assert not Path("copies").exists()


def test_the_help_names_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corrupt", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(kind in said for kind in CORRUPTIONS)
