"""Options: each has a help text, and fractions are no whole numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cyclopts import App, Argument
from helpers.commands import score

import brittle
from brittle.cli.commands import app, main
from brittle.cli.common import as_called
from brittle.cli.score import open_again


def options_below(below: App, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Argument]]:
    """Every command with every option that it takes."""
    for name in below:
        if not name.startswith("-"):
            command = below[name]
            if command.default_command is not None:
                for argument in command.assemble_argument_collection(parse_docstring=True):
                    if argument.parse and not argument.children:
                        yield (*path, name), argument
            yield from options_below(command, (*path, name))


@cache
def every_option() -> tuple[tuple[tuple[str, ...], Argument], ...]:
    return tuple(options_below(app))


def options_of(*command: str) -> set[str]:
    return {argument.name for path, argument in every_option() if path == command}


def whole_number_options() -> list[tuple[str, ...]]:
    """Return every option that takes an int, as the command line has it, its command before it."""
    return [(*path, argument.name) for path, argument in every_option() if argument.hint in (int, int | None)]


def test_every_option_has_a_help_text() -> None:
    silent = [(*path, argument.name) for path, argument in every_option() if not argument.parameter.help]
    assert silent == []


def test_the_doctor_takes_the_options_of_what_is_scored() -> None:
    of_the_run = {"--out", "--confidence", "--skip-doctor", "--resume", "--mirror"}
    of_the_run |= {"--quiet", "--workers", "--cluster", "--part"}
    assert of_the_run <= options_of("score")
    assert options_of("doctor") - {"--cost", "--json"} == options_of("score") - of_the_run


def test_a_fraction_is_no_whole_number(capsys: pytest.CaptureFixture[str]) -> None:
    options = whole_number_options()
    assert {("more", "--draws"), ("show", "--top"), ("detector", "apply", "--batch-size")} <= {*options}
    for option in options:
        assert main([*option, "1.5"]) == 2
        assert f"{option[-1]} takes a whole number; found '1.5'" in capsys.readouterr().err


def test_help_has_ten_options_and_names_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("score", "doctor"):
        assert main([command, "--help"]) == 0
        short_help = capsys.readouterr().out
        assert main([command, "--help-all"]) == 0
        long_help = capsys.readouterr().out
        assert all(option in short_help for option in options_of(command))
        assert len(short_help.splitlines()) <= 60 < 80 < len(long_help.splitlines())


def test_the_command_line_overrides_a_file_of_options(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["sigma = [0.1, 0.2]", 'scores = ["monte_carlo"]', "draws = 20", "precision = 0.1", "quiet = true"]
    (place / "run.toml").write_text("\n".join([*lines, "resume = 'yes'", "bounds = [0, 1]", "batch_size = 2"]))
    assert score("--config", "run.toml", "--sigma", "0.3") == 0
    labels = [entry.label for entry in brittle.read_table("run").record.scores]
    assert labels == ["monte_carlo(draws=20, precision=0.1, sigma=0.3)"]
    restored = open_again(["score", "./net.py:make", "data.npz", "--out", "run", "--config", "run.toml"])
    assert len(restored.scores) == 2, "another process reads the file, too"
    for text, word in (("sigam = 0.1", "sigam"), ("draws = 1.5", "draws"), ("[score]", "score"), ("sigma = ", "TOML")):
        (place / "run.toml").write_text(text)
        assert score("--config=run.toml", out="other") == 2
        assert word in capsys.readouterr().err
    assert score("--config", "none.toml", out="other") == 2


@pytest.mark.parametrize(("before", "after"), [("[", "]"), ("{a=", "}")])
@pytest.mark.parametrize("levels", [150, 400, 900, 5000])
def test_a_file_of_options_may_be_nested_however_deep(
    before: str, after: str, levels: int, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "run.toml").write_text(f"sigma = {before * levels}{'1' * (before != '[')}{after * levels}")
    assert score("--config", "run.toml", out="other") == 2
    assert "run.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("orig", "called"),
    [
        (["python3", "-m", "brittle", "show", "run"], "python3 -m brittle"),
        (["brittle", "show", "run"], "brittle"),
    ],
)
def test_commands_name_the_program_as_called(monkeypatch: pytest.MonkeyPatch, orig: list[str], called: str) -> None:
    monkeypatch.setattr(sys, "orig_argv", orig)
    monkeypatch.setattr(sys, "argv", ["/x/brittle/__main__.py" if "-m" in orig else "brittle", "show", "run"])
    assert as_called("do: brittle show run\nby `brittle score`, ./brittle show") == (
        f"do: {called} show run\nby `brittle score`, ./brittle show"
    )
    for command in app:
        if not command.startswith("-"):
            assert as_called(f"do: brittle {command} run") == f"do: {called} {command} run"
