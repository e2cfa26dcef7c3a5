"""Commands: help is quick, the demo runs, files are replaced where they are ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commands import WRITING

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
