"""The command line: parses, calls, prints. Results go to files and stdout, talk to stderr."""

import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from io import TextIOWrapper
from typing import Any

from cyclopts import App, CommandCollisionError, CycloptsError

from brittle.cli.common import (
    AS_TYPED,
    HELP_ALL,
    MORE_HELP,
    Paragraphs,
    explained,
    options_of_file,
    show,
    whole_numbers,
)  # fmt: skip
from brittle.cli.runs import check, compare, export, list_scores, verify
from brittle.cli.runs import show as show_run
from brittle.errors import BrittleError, ModelError, ParameterError, UsageError
from brittle.registry import Registry, missing

INTERRUPTED, READER_GONE, TERMINATED = 130, 141, 143  # exit codes: by the keyboard, by `| head`, told to end

app = App(
    name="brittle",
    version=version("brittle"),
    help="How easily does each prediction of a trained classifier break, how sure is that, and what did it cost?",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    config=(options_of_file, whole_numbers),
    default_parameter=AS_TYPED,
    help_formatter=Paragraphs(),
)

# Those that take the fields of scores as options are imported when they are called, and PyTorch with the scores.
app.command(
    "brittle.cli.score:score",
    name="score",
    help="Score every point of DATA by MODEL and write the run folder OUT.",
    help_epilogue=MORE_HELP,
)
app.command(compare)
app.command(check)
app.command(
    "brittle.cli.doctor:doctor",
    name="doctor",
    help="Examine MODEL, DATA and settings as `brittle score` does before it scores, and print what is known of them.\n"
    "\nAll checks that can be made are made, even where others fail. Exits with 0 where none failed, with 3 "
    "otherwise.",
    help_epilogue=MORE_HELP,
)
app.command(show_run, name="show")
app.command(export)
app.command(verify)
app.command(list_scores, name="list")
FAULTS: list[str] = []  # sentences about commands of extensions that cannot be added, printed before any command

for word in (words := Registry[Any]("command", {})):
    try:
        if not callable(command := words[word]):
            raise ParameterError(f"command.{word} is {command!r:.40}, which cannot be called")
        app.command(command) if isinstance(command, App) else app.command(command, name=word, help_epilogue=MORE_HELP)
    except BrittleError as error:
        FAULTS.append(str(error))
    except CommandCollisionError:
        FAULTS.append(f"two commands are called {word}, of which one is of an extension; have it renamed")

app.register_install_completion_command(help="Let a shell complete commands and options by the tab key.")


def run() -> None:
    signal.signal(signal.SIGTERM, _terminate)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that the terminal's alphabet lacks, as stderr does
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(READER_GONE)  # Python would flush the output once more
    if code == INTERRUPTED:
        sys.stderr.flush()
        os._exit(code)  # `python -m` would end by the signal, where it met the text of an `exec`, as dataclasses have
    sys.exit(code)


class _Terminated(BaseException):
    """The process was told to end."""


_NO_MEMORY = "the memory of this machine is full; try a smaller --batch-size, or fewer points at a time (--points)"

_AFTER = "where a run was begun, what its folder holds is whole, and brittle score goes on with it by --resume"
"""Sentence about the state of a command that was stopped."""


def _terminate(number: int, frame: object) -> None:
    raise _Terminated


def _refusal(error: MemoryError | OSError) -> BrittleError:
    """Make one sentence of an error of the system that no reader expects, as of a folder closed to the user."""
    if isinstance(error, MemoryError):
        return ModelError("out_of_memory", f"{_NO_MEMORY}; {_AFTER}")
    why = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return BrittleError("unreadable", f"a file or a connection cannot be used ({why}); --debug shows which")
    path = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
    is_closed = isinstance(error, PermissionError)
    advice = "check that you may look into the folders above it" if is_closed else "--debug shows where"
    return BrittleError("unreadable", f"{path} cannot be used ({why}); {advice}")


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    debug = "--debug" in arguments
    words = ["--help" if word == "--help-all" else word for word in arguments if word != "--debug"]
    shows_all = HELP_ALL.set("--help-all" in arguments)
    for sentence in FAULTS:
        show(f"brittle: note: {sentence}", sys.stderr)
    try:
        return app(words, exit_on_error=False, print_error=False, result_action="return_value") or 0
    except CycloptsError as error:
        absent = missing("command", words[0]) if words else ""
        show(f"brittle: {words[0]} {absent}" if absent else f"brittle: {explained(error, words)}", sys.stderr)
        return UsageError.exit_code
    except BrokenPipeError:
        raise
    except (BrittleError, MemoryError, OSError) as error:
        if debug:
            raise
        refusal = error if isinstance(error, BrittleError) else _refusal(error)
        print(f"brittle: {refusal}", file=sys.stderr)
        return refusal.exit_code
    except KeyboardInterrupt:
        print(f"brittle: interrupted; {_AFTER}", file=sys.stderr)
        return INTERRUPTED
    except _Terminated:
        print(f"brittle: terminated; {_AFTER}", file=sys.stderr)
        return TERMINATED
    finally:
        HELP_ALL.reset(shows_all)
