"""Options: each says what it is, and what is no number is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cyclopts import App, Argument

from brittle.cli import app, main
from brittle.cli.common import as_called


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
    """Every option that takes an int, as the command line has it, its command before it."""
    return [(*path, argument.name) for path, argument in every_option() if argument.hint in (int, int | None)]


def test_every_option_says_what_it_is() -> None:
    silent = [(*path, argument.name) for path, argument in every_option() if not argument.parameter.help]
    assert silent == []


def test_the_doctor_takes_the_options_of_a_run_that_say_what_is_scored() -> None:
    of_the_run = {"--out", "--confidence", "--skip-doctor", "--resume"}
    of_the_run |= {"--quiet", "--workers", "--cluster", "--part"}
    assert of_the_run <= options_of("score")
    assert options_of("doctor") - {"--cost"} == options_of("score") - of_the_run


def test_a_fraction_is_no_whole_number(capsys: pytest.CaptureFixture[str]) -> None:
    found = whole_number_options()
    assert {("score", "--draws"), ("show", "--top"), ("detector", "apply", "--batch-size")} <= {*found}
    for option in found:
        assert main([*option, "1.5"]) == 2
        assert f"{option[-1]} takes a whole number; found '1.5'" in capsys.readouterr().err


def test_help_has_ten_options_and_names_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("score", "doctor"):
        assert main([command, "--help"]) == 0
        first = capsys.readouterr().out
        assert main([command, "--help-all"]) == 0
        whole = capsys.readouterr().out
        assert all(option in first for option in options_of(command))
        assert len(first.splitlines()) <= 60 < 80 < len(whole.splitlines())


def test_commands_are_printed_as_it_was_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "brittle").touch()
    for typed, called in (("brittle", "brittle"), (str(tmp_path / "brittle"), str(tmp_path / "brittle"))):
        monkeypatch.setattr(sys, "argv", [typed, "show", "run"])
        assert as_called("do: brittle show run\nby `brittle score`, ./brittle show") == (
            f"do: {called} show run\nby `brittle score`, ./brittle show"
        )
