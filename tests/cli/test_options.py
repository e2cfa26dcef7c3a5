"""Options: each says what it is, and what is no number is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from cyclopts import App, Argument

from brittle.cli import app, main


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
    of_the_run = {"--out", "--confidence", "--allow-row-errors", "--skip-doctor", "--resume"}
    of_the_run |= {"--quiet", "--workers", "--cluster", "--gpus-per-worker", "--insecure-cluster", "--as-worker"}
    assert of_the_run <= options_of("score")
    assert options_of("doctor") == options_of("score") - of_the_run | {"--planted"}


def test_options_of_whole_numbers_are_found() -> None:
    found = set(whole_number_options())
    assert {("score", "--draws"), ("corrupt", "--seed"), ("detector", "fit", "--seed")} <= found


@pytest.mark.parametrize("option", whole_number_options(), ids=" ".join)
@pytest.mark.parametrize("number", ["1.5", "2.0", "1e3", "many"])
def test_a_fraction_is_no_whole_number(
    option: tuple[str, ...], number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*option, number]) == 2
    assert f"{option[-1]} takes a whole number; found {number!r}" in capsys.readouterr().err
