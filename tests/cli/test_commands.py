"""Commands: help is quick, the demo runs, files are replaced where they are ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commands import WRITING

import brittle
from brittle.cli.commands import main

pytestmark = pytest.mark.usefixtures("nothing_drawn")  # words are what counts here


def test_a_report_of_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "nowhere"]) == 2
    assert "is not a run folder" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "path", "called"), WRITING)
def test_a_file_of_brittle_is_replaced(run: Path, command: list[str], path: str, called: str) -> None:
    assert main(command) == 0
    written = Path(path).read_text()
    Path(path).write_text(written + "<!-- an older one -->\n")
    assert main(command) == 0
    assert Path(path).read_text() == written


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["report", "--help"]], ids=" ".join)
def test_help_is_quick_and_needs_no_torch(arguments: list[str]) -> None:
    code = f"import sys, brittle.cli.commands as cli; cli.main({arguments}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "brittle", "--version"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout.strip()) == (0, brittle.__version__)


@pytest.mark.parametrize(
    ("shell", "script", "loads"),
    [
        ("bash", ".local/share/bash-completion/completions/brittle", ".bashrc"),
        ("zsh", ".zsh/completions/_cyclopts_brittle", ".zshrc"),
    ],
)
def test_a_shell_completes_commands_and_options(
    shell: str, script: str, loads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ZSH", "ZSH_CUSTOM"):
        monkeypatch.delenv(name, raising=False)
    assert not main(["--install-completion", "--shell", shell])
    script_path = tmp_path / script
    assert {"detector", "--precision"} <= {*re.findall(r"[\w-]+", script_path.read_text())}
    assert str(script_path if shell == "bash" else script_path.parent) in (tmp_path / loads).read_text()
    if program := shutil.which(shell):
        assert subprocess.run([program, "-n", script_path], check=False).returncode == 0


def test_an_unknown_shell_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BASH_VERSION", "ZSH_VERSION", "FISH_VERSION", "SHELL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "PATH"):  # no `ps` tells which program called
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(SystemExit):
        main(["--install-completion"])
    assert not list(tmp_path.iterdir())


def test_names_that_the_output_cannot_hold_are_escaped(run: Path) -> None:
    """Run with an output of limited characters, like a file on Windows."""
    (run / "run").rename(run / "\u732b")
    command = [sys.executable, "-m", "brittle", "show", "\u732b"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert "brittle show \\u732b" in process.stdout.replace("'", "")
