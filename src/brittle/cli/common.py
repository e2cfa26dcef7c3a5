"""What the commands share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from cyclopts import App, ArgumentCollection, Parameter

from brittle.errors import ParameterError, StorageError, UsageError, printable
from brittle.store.files.writing import check_target, check_writable_file

if TYPE_CHECKING:
    from brittle.store.table import Table

ROW_FAILURES = 4
"""Exit code where some points got no number."""

START = 4096
"""Bytes at the start of a file that say whose it is."""

Many = Parameter(consume_multiple=True, negative=())
Flag = Parameter(negative=())


def default_text(value: object) -> str | None:
    """A default as one would type it; None for what is left out by default, of which help says nothing.

    Example:
        >>> default_text(("0", "1")), default_text(()), default_text(False), default_text(0.99)
        ('0 1', None, None, '0.99')
    """
    if value is None or value is False or value in ("", ()):
        return None
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def in_pairs(arguments: Sequence[str]) -> list[str]:
    """The words of a command line with that behind `--bounds` twice where it stands for both ends: none, or a file."""
    found: list[str] = []
    for word in arguments:
        name, _, value = word.partition("=")
        if name == "--bounds" and _is_both_ends(value):
            found += [name, value, value]
        elif found and found[-1] == "--bounds" and _is_both_ends(word):
            found += [word, word]
        else:
            found.append(word)
    return found


def _is_both_ends(word: str) -> bool:
    return word == "none" or word.endswith(".npy")


def whole_numbers(app: App, command: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse fractions where a whole number is needed, for every option of every command; cyclopts would round them."""
    for argument in arguments:
        if argument.hint not in (int, int | None):
            continue
        for token in argument.tokens:
            try:
                int(token.value)
            except ValueError as error:
                name = token.keyword or argument.name
                raise UsageError(f"{name} takes a whole number; found {token.value!r:.60}") from error


def whole_rows(batch_size: str) -> int | None:
    """Rows in one pass, or None for `auto`."""
    if batch_size == "auto":
        return None
    if not batch_size.lstrip("-").isdigit():
        raise UsageError(f"--batch-size takes a whole number or auto; found {batch_size!r}")
    return int(batch_size)


def check_place(path: Path, suffix: str = "") -> None:
    """Raise, before anything is computed, where the file cannot be written.

    Raises:
        ParameterError: its name does not end in `suffix`.
        StorageError: there is no such folder, it is not writable, or there is a link, a pipe, a device or a folder.
    """
    if path.suffix != (suffix or path.suffix):
        raise ParameterError(f"the file must end in {suffix}; found {path.name!r}")
    check_writable_file(path)


def check_own(path: Path, mark: str, what: str) -> None:
    """Raise where a file is there that is not one of ours: no other is replaced.

    Args:
        path: where a file is to be written.
        mark: what stands in the first characters of every file that we write there.
        what: such a file, in words.

    Raises:
        StorageError: a file without the mark is there, or a link, a pipe, a device or a folder.
    """
    check_target(path)
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            ours = mark.encode() in file.read(START)
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be read ({error.strerror}); choose another file") from error
    if not ours:
        raise StorageError(
            "exists", f"{path} is there already and is no {what} of brittle; choose another file, or remove it"
        )


def open_run(folder: Path) -> Table:
    """The table of the run in `folder`; that it has not finished is said, on stderr.

    Raises:
        BrittleError: there is no run, or it is damaged.
    """
    from brittle.store.reading import read_table

    table = read_table(folder)
    record = table.record
    if not record.finished:
        there, all_points = len(table.points), record.data.points
        of_all = "" if all_points is None else f" of {all_points:,}"
        say(
            False,
            f"note: run_unfinished: the run in {folder} has not finished: {there:,}{of_all} points are there; its "
            "command goes on with it by --resume",
        )
    return table


def say(quiet: bool, sentence: str) -> None:
    """Print what happens, on stderr, unless QUIET."""
    if not quiet:
        show(f"brittle: {sentence}", sys.stderr)


def show(text: str, stream: TextIO | None = None) -> None:
    """Print lines of text, on stdout by default; what a terminal would obey is shown as an escape."""
    print("\n".join(map(printable, text.split("\n"))), file=stream)
