"""Commands: help is quick, the demo runs, files are replaced where they are ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commands import WRITING
from helpers.tables import make_table

import brittle
from brittle.cli import main

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # words are what counts here


def test_a_report_of_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nowhere"]) == 2
    assert "is not a run folder" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "path", "called"), WRITING)
def test_a_file_of_brittle_is_replaced(run: Path, command: list[str], path: str, called: str) -> None:
    assert main(command) == 0
    whole = Path(path).read_text()
    Path(path).write_text(whole + "<!-- an older one -->\n")
    assert main(command) == 0
    assert Path(path).read_text() == whole


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["report", "--help"]], ids=" ".join)
def test_help_is_quick_and_needs_no_torch(arguments: list[str]) -> None:
    code = f"import sys, brittle.cli; brittle.cli.main({arguments}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "brittle", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, brittle.__version__)


def test_an_older_page_beside_the_folder_of_a_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`brittle demo` writes its page there; another file of this name is none of ours."""
    make_table(points=3, scores=("softmax",)).save(tmp_path / "run")
    (tmp_path / "report.html").write_text("<html>")
    assert main(["report", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().err == ""
    (tmp_path / "report.html").write_text((tmp_path / "run" / "report.html").read_text())
    assert main(["report", str(tmp_path / "run")]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"{tmp_path / 'report.html'} is an older page; that of the run as it is now is" in said
