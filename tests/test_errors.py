"""Errors: one line that can be read, a code for scripts, and an exit code for each kind."""

from __future__ import annotations

import pytest

from brittle import errors
from brittle.errors import BrittleError, ParameterError, UnknownNameError, UsageError, listed, printable

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BrittleError)]
OF_THEIR_KIND = {UsageError: "usage", ParameterError: "parameter", UnknownNameError: "unknown_name"}


@pytest.mark.parametrize("text", ["plain", "two\nlines", "\x1b[31mred", "\u202egnp", "\udc80", "caf\u00e9 \U0001f4a5"])
def test_any_text_is_told_in_one_line(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert (shown == text) == text.isprintable()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_code_and_an_exit_code(kind: type[BrittleError]) -> None:
    arguments = ("seen \x1b here",) if kind in OF_THEIR_KIND else ("some_code", "seen \x1b here")
    error = kind(*arguments)
    assert str(error) == f"{error.code}: seen \\x1b here"
    assert error.code == OF_THEIR_KIND.get(kind, "some_code")
    assert error.exit_code in (2, 3, 5, 6, 7)


def test_an_unknown_name_is_misuse_of_command_and_parameter() -> None:
    assert issubclass(UnknownNameError, UsageError)
    assert issubclass(UnknownNameError, ParameterError)
    assert issubclass(UnknownNameError, ValueError)


@pytest.mark.parametrize("count", range(6))
def test_a_list_names_the_first_and_counts_the_others(count: int) -> None:
    names = [f"n{number}" for number in range(count)]
    text = listed(names, 3)
    assert [name in text for name in names] == [True] * min(count, 3) + [False] * max(0, count - 3)
    assert text.endswith(f" and {count - 3} more") == (count > 3)
