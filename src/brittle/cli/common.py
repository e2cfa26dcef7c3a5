"""What the commands share: how words are read, which help is shown, what is printed."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cyclopts import App, ArgumentCollection, CycloptsError, Group, MissingArgumentError, Parameter
from cyclopts.help import DefaultFormatter, HelpPanel

from brittle.errors import ParameterError, StorageError, UsageError, printable
from brittle.store.writing import check_target, check_writable_file

if TYPE_CHECKING:
    from brittle.store.table import Table

ROW_FAILURES = 4
"""Exit code where some points got no number."""

START = 4096
"""Bytes at the start of a file that say whose it is."""

Many = Parameter(consume_multiple=True, negative=())
Flag = Parameter(negative=())

NAME = "brittle"
"""The program."""

FIRST = frozenset(
    f"--{name}"
    for name in (
        *("out", "weights", "bounds", "decision", "label-column", "points"),
        *("scores", "sigma", "noise", "until", "resume"),
    )
)
"""The options that `--help` of a command with groups tells of, `--out` and ten more; `--help-all` tells of all."""

HELP_ALL: ContextVar[bool] = ContextVar("HELP_ALL", default=False)

MORE_HELP = """\
--help-all tells of every option. --config FILE.toml takes options from a file, by their names:
sigma = [0.1, 0.2], until = "decided", resume = true; those on the command line go before.\
"""


class Paragraphs(DefaultFormatter):
    """Prints groups of options, each description as one paragraph, however the lines of its docstring break."""

    def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:
        entries = [
            entry.copy(description=" ".join(str(getattr(entry.description, "primary_renderable", "")).split()))
            for entry in panel.entries
        ]
        super().__call__(console, options, panel.copy(entries=entries))


def _few(console: Any, options: Any, panel: HelpPanel) -> None:
    """Print a group of options: of the first screen arguments and those in `FIRST` in full, the others by name."""
    others = [entry.names[0] for entry in panel.entries if not _is_shown(entry)]
    rest = f"Also: {', '.join(others)}." if others else None
    shown = [*filter(_is_shown, panel.entries)]
    if not shown:
        console.print(f"{panel.title}. {rest}", soft_wrap=False)
    Paragraphs()(console, options, panel.copy(entries=shown, description=rest))


def _is_shown(entry: Any) -> bool:
    return HELP_ALL.get() or entry.positional_label is not None or bool(FIRST & {*entry.names})


ARGUMENTS, MODEL, DATA, NOISE, LENGTH, OUTPUT = (
    Group(title, sort_key=place, help_formatter=_few)
    for place, title in enumerate(("Model and data", "Model", "Data", "Scores and noise", "How long", "Output"))
)
"""The groups of the options of `score` and `doctor`."""


def default_text(value: object) -> str | None:
    """A default as one would type it; None for what is left out by default, of which help says nothing.

    Example:
        >>> default_text(("0", "1")), default_text(()), default_text(False), default_text(0.99)
        ('0 1', None, None, '0.99')
    """
    if value is None or value is False or value in ("", ()):
        return None
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def with_config(arguments: Sequence[str]) -> list[str]:
    """The words of a command line with the options of its `--config` file behind them, but for those that it gives."""
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--config=") else [word])]
    if "--config" not in words:
        return words
    place = words.index("--config")
    path, rest = next(iter(words[place + 1 :]), ""), words[:place] + words[place + 2 :]
    if not path or path.startswith("--"):
        raise UsageError("--config takes a TOML file with options by their names, such as --config run.toml")
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"--config {path} cannot be read as TOML: {error}") from error
    if tables := [name for name, value in given.items() if isinstance(value, dict)]:
        raise UsageError(f"--config {path} has the table [{tables[0]}]; options stand by their names, in no table")
    known = {word.partition("=")[0] for word in rest}
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if option not in known and value is not False:
            values = [] if value is True else value if isinstance(value, list) else [value]
            rest += [option, *map(str, values)]
    return rest


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
        if argument.hint not in (int, int | None, tuple[int, ...]):
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


def check_new(path: Path, overwrite: bool, suffix: str = "") -> None:
    """Raise, before anything is computed, where the file cannot be written or is there already."""
    if path.suffix != (suffix or path.suffix):
        raise ParameterError(f"the file must end in {suffix}; found {path.name!r}")
    check_writable_file(path)
    if path.exists() and not overwrite:
        raise StorageError("exists", f"{path} is there already; choose another file, or replace it with --overwrite")


def check_own(path: Path, mark: str, what: str) -> None:
    """Raise where a file is there that is not `what` of ours, which holds `mark` at its start: no other is replaced."""
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
    """The table of the run in `folder`; that it has not finished is said, on stderr."""
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


def program() -> str:
    """What one types to call brittle again: its name, the path that was typed, or `python -m brittle`."""
    typed = Path(sys.argv[0])
    if typed.name == "__main__.py" and sys.orig_argv[1:3] == ["-m", NAME]:
        return shlex.join(sys.orig_argv[:3])
    found = shutil.which(NAME)
    called = typed.name == NAME and typed.is_file() and not (found is not None and typed.samefile(found))
    return shlex.quote(sys.argv[0]) if called else NAME


def as_called(text: str) -> str:
    """`text` with the commands in it as this program was called."""
    commands = "score|show|report|detector|compare|verify|doctor|corrupt|demo|join|list"
    return re.sub(rf"(?<![\w/.`-]){NAME} (?=({commands})\b)", lambda _: f"{program()} ", text)


_JOINED = re.compile(r"-?[.\d][-+.\deE]*(,-?[.\d][-+.\deE]*)+,?")
"""Several numbers with commas between them."""


def explained(error: CycloptsError, words: Sequence[str]) -> str:
    """What the parser says of `words`, or what to type instead where that can be told."""
    spread = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for place, word in enumerate(spread):
        option = next((one for one in reversed(spread[:place]) if one.startswith("--")), None)
        if option is not None and _JOINED.fullmatch(word):
            apart = " ".join(one for one in word.split(",") if one)
            return f"{option} takes numbers with spaces between them; found {word!r:.60}: write {option} {apart}"
    argument = error.argument
    if isinstance(error, MissingArgumentError) and error.command_chain and argument is not None and not argument.tokens:
        name = argument.name if argument.index is None else argument.name.lstrip("-").upper()
        command = " ".join((NAME, *error.command_chain))
        given = name in words
        needs = f"{name} takes a value" if given else f"{command} needs {name}"
        return f"{needs}; {command} --help shows how it is called"
    return str(error)
