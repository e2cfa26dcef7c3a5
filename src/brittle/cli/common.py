"""Common parts of the commands: reading words, showing help, printing."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, get_args, get_origin

from cyclopts import App, ArgumentCollection, CoercionError, CycloptsError, Group, MissingArgumentError, Parameter
from cyclopts.config import Dict
from cyclopts.help import DefaultFormatter, HelpPanel

from brittle.errors import ParameterError, StorageError, UsageError, printable
from brittle.store.writing import check_target, check_writable_file

if TYPE_CHECKING:
    from brittle.store.record import RunRecord
    from brittle.store.table import Table

ROW_FAILURES = 4  # exit code where some points got no number
START = 4096  # bytes at the start of a file that say whose it is
NAME = "brittle"  # the program
FIRST = frozenset(  # options that `--help` tells of; `--help-all` tells of all
    f"--{name}"
    for name in (
        *("out", "weights", "bounds", "decision", "label-column", "points"),
        *("scores", "sigma", "noise", "limit", "draws", "resume"),
    )
)

HELP_ALL: ContextVar[bool] = ContextVar("HELP_ALL", default=False)

MORE_HELP = "--help-all tells of all. A file may hold options: --config run.toml."

Run = Annotated[Path, Parameter(name="run")]
BatchSize = Annotated[int | None, Parameter(help="Most rows in one pass; wide layers are given fewer, down to 64.")]
Config = Annotated[Path | None, Parameter(help="A TOML file with options; those on the command line go before.")]
Json = Annotated[bool, Parameter(help="Print it as JSON.")]
Overwrite = Annotated[bool, Parameter(help="Replace the file OUT where it is there already.")]
Quiet = Annotated[bool, Parameter(help="Show no progress.")]


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
    hidden = [entry.names[0] for entry in panel.entries if not _is_shown(entry)]
    hint = f"Also: {', '.join(hidden)}." if hidden else None
    shown = [*filter(_is_shown, panel.entries)]
    if not shown:
        console.print(f"{panel.title}. {hint}", soft_wrap=False)
    Paragraphs()(console, options, panel.copy(entries=shown, description=hint))


def _is_shown(entry: Any) -> bool:
    return HELP_ALL.get() or entry.positional_label is not None or bool(FIRST & {*entry.names})


MODEL, DATA, NOISE, LENGTH, OUTPUT = (  # groups of the options of `score` and `doctor`
    Group(title, sort_key=place, help_formatter=_few)
    for place, title in enumerate(("Model", "Data", "Scores and noise", "How long", "Output"))
)


def default_text(value: object) -> str | None:
    """Return a default as a user types it; None for defaults that the help leaves out."""
    if value is None or value is False or value in ("", ()):
        return None
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


AS_TYPED = Parameter(show_default=default_text, negative=(), consume_multiple=True)  # settings of all options


def options_of_file(app: App, command: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Take from the TOML file of `--config` the options that the command line does not give."""
    path = next((option.tokens[-1].value for option in arguments if option.name == "--config" and option.tokens), None)
    if path is None:
        return
    try:
        settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--config {path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--config {path} is no TOML: {error}") from error
    if tables := [name for name, value in settings.items() if isinstance(value, dict)]:
        raise UsageError(f"--config {path} has the table [{tables[0]}]; options stand by their names, in no table")
    Dict(settings, source=path, use_commands_as_keys=False)(app, command, arguments)


def whole_numbers(app: App, command: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse fractions where a whole number is needed, for every option of every command; cyclopts would round them."""
    for argument in arguments:
        for token in argument.tokens if argument.hint in (int, int | None, tuple[int, ...]) else ():
            try:
                int(token.value)
            except ValueError as error:
                name = token.keyword or argument.name
                raise UsageError(f"{name} takes a whole number; found {token.value!r:.60}") from error


def check_new(path: Path, overwrite: bool, suffix: str = "") -> None:
    """Raise, before anything is computed, where the file cannot be written or is there already."""
    if path.suffix != (suffix or path.suffix):
        raise ParameterError(f"the file must end in {suffix}; found {path.name!r}")
    check_writable_file(path)
    if path.exists() and not overwrite:
        raise StorageError("exists", f"{path} is there already; choose another file, or replace it with --overwrite")


def check_own(path: Path, mark: str, kind: str) -> None:
    """Raise where a file is there that is not `kind` of ours, which holds `mark` at its start: no other is replaced."""
    check_target(path)
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            ours = mark.encode() in file.read(START)
    except OSError as error:
        raise StorageError("unwritable", f"{path} cannot be read ({error.strerror}); choose another file") from error
    if not ours:
        fault = f"{path} is there already and is no {kind} of brittle"
        raise StorageError("exists", f"{fault}; choose another file, or remove it")


def open_run(folder: Path, *beside: Path, images: bool = False, point: str | None = None) -> Table:
    """Read the table of the run in `folder`, as `read_table` does; warn on stderr if the run is unfinished.

    Of a long run it is a sample, such as those of the runs `beside` it hold the same points of.
    """
    from brittle.store import reading

    (_, manifest), *_ = runs = [reading.open_run(run_folder) for run_folder in (folder, *beside)]
    max_points = reading.MOST_READ // max(1, *(len(record.scores) for record, _ in runs))
    table = reading.read_table(folder, max_points, images=images, point=point)
    note_unfinished(folder, table.record, sum(entry.account.points for entry in manifest.shards))
    return table


def note_unfinished(folder: Path, record: RunRecord, points: int) -> None:
    """Say on stderr of a run that has not finished how many points are there."""
    if not record.finished:
        of_all = "" if record.data.points is None else f" of {record.data.points:,}"
        say(
            False,
            f"note: run_unfinished: the run in {folder} has not finished: {points:,}{of_all} points are there; its "
            "command goes on with it by --resume",
        )


def records(frame: Any) -> list[dict[Any, Any]]:
    """Return the rows of a frame, None where a cell holds nothing."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def say(quiet: bool, sentence: str) -> None:
    """Print what happens, on stderr, unless QUIET."""
    if not quiet:
        show(f"brittle: {sentence}", sys.stderr)


def show(text: str, stream: TextIO | None = None) -> None:
    """Print lines of text, on stdout by default; what a terminal would obey is shown as an escape."""
    print("\n".join(map(printable, text.split("\n"))), file=stream)


def say_failures(head: str, sentences: Sequence[str]) -> int:
    """Say on stderr which points got no number; the exit code."""
    for sentence in (head, *(f"  {sentence_of_list}" for sentence_of_list in sentences)):
        show(f"brittle: {sentence}", sys.stderr)
    return ROW_FAILURES


def program() -> str:
    """Return the words that call brittle again: its name, the path that was typed, or `python -m brittle`."""
    typed = Path(sys.argv[0])
    if typed.name == "__main__.py" and sys.orig_argv[1:3] == ["-m", NAME]:
        return shlex.join(sys.orig_argv[:3])
    installed = shutil.which(NAME)
    called = typed.name == NAME and typed.is_file() and not (installed is not None and typed.samefile(installed))
    return shlex.quote(sys.argv[0]) if called else NAME


def as_called(text: str) -> str:
    """`text` with the commands in it as this program was called."""
    commands = "score|show|report|robust-accuracy|detector|surrogate|compare|check|export|verify|doctor|demo|join"
    commands += "|more|list"
    return re.sub(rf"(?<![\w/.`-]){NAME} (?=({commands})\b)", lambda _: f"{program()} ", text)


KINDS = {int: "a whole number", float: "a number"}  # the word of the help for a value of a type


def _kinds(hint: Any) -> str:
    """Say what an option of a type takes: `a number or none` for `float | Literal["none"] | None`."""
    if hint in KINDS:
        return KINDS[hint]
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    parts = [part for part in get_args(hint) if part not in (type(None), ...)]
    return " or ".join(dict.fromkeys(map(_kinds, parts))) or "another word"


_JOINED = re.compile(r"-?[.\d][-+.\deE]*(,-?[.\d][-+.\deE]*)+,?")  # several numbers with commas between them


def explained(error: CycloptsError, words: Sequence[str]) -> str:
    """Return the parser's sentence about `words`, or what to type instead where that can be told."""
    for option, word in pairwise(" ".join(words).replace("=", " ").split()):
        if option.startswith("--") and _JOINED.fullmatch(word):
            apart = " ".join(filter(None, word.split(",")))
            return f"{option} takes numbers with spaces between them; found {word!r:.60}: write {option} {apart}"
    if isinstance(error, CoercionError) and error.token is not None and error.argument is not None:
        typed = error.token.source in ("", "cli")
        name = (error.token.keyword if typed else None) or error.argument.name
        file = "" if typed else f" in {error.token.source}"
        return f"{name} takes {_kinds(error.argument.hint)}; found {error.token.value!r:.60}{file}"
    if isinstance(error, MissingArgumentError) and error.command_chain and error.argument is not None:
        command = " ".join((NAME, *error.command_chain))
        options = any(word.startswith("--") for word in words)
        place = ", before the options: one of several values takes all that follow it" if options else ""
        return f"{command} needs a value for {error.argument.name}{place}; {command} --help shows how it is called"
    return str(error)
