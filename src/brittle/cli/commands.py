"""The command line: parses, calls, prints. Results go to files and stdout, talk to stderr."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

from brittle.cli.advice import explained
from brittle.cli.common import Flag, Many, check_own, default_text, in_pairs, open_run, show, whole_numbers
from brittle.cli.compare import compare
from brittle.cli.corrupt import corrupt
from brittle.cli.detector import detector, pseudo_margin
from brittle.cli.options import Quiet
from brittle.cli.show import show as show_run
from brittle.cli.verify import verify
from brittle.errors import BrittleError, ModelError, StorageError, UsageError

INTERRUPTED, READER_GONE, TERMINATED = 130, 141, 143
"""Exit codes: interrupted from the keyboard; what read the output is gone, as after `| head`; asked to end."""

app = App(
    name="brittle",
    version=version("brittle"),
    help="How easily does each prediction of a trained classifier break, how sure is that, and what did it cost?",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    config=whole_numbers,
    default_parameter=Parameter(show_default=default_text),
)

# Those that take the fields of scores as options are imported when they are called, and PyTorch with the scores.
app.command(
    "brittle.cli.score:score",
    name="score",
    help="Score every point of DATA by MODEL and write the run folder OUT.",
)
app.command(detector)
app.command(pseudo_margin)
app.command(compare)
app.command(corrupt)
app.command(
    "brittle.cli.doctor:doctor",
    name="doctor",
    help="Examine MODEL, DATA and settings as `brittle score` does before it scores, and print what is known of them.\n"
    "\nAll checks that can be made are made, even where others fail. Exits with 0 where none failed, with 3 "
    "otherwise.",
)
app.command(show_run, name="show")
app.command(verify)
app.command(
    "brittle.cli.join:join",
    name="join",
    help="Put parts of a run together, or add later runs to a first one, in the new run folder OUT.",
)


def run() -> None:
    """Entry point of the `brittle` command."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_gone():
            raise
        os._exit(READER_GONE)  # Python would flush the output once more
    sys.exit(code)


def _reader_gone() -> bool:
    """Whether nobody reads the output any more."""
    watch = select.poll()
    watch.register(sys.stdout.fileno(), 0)  # a broken pipe is told unasked
    return bool(watch.poll(0))


class _Terminated(BaseException):
    """The process was asked to end."""


_NO_MEMORY = "the memory of this machine is full; try a smaller --batch-size, or fewer points at a time (--points)"

_AFTER = "where a run was begun, what its folder holds is whole, and brittle score goes on with it by --resume"
"""What is left of a command that was stopped."""


def _terminate(number: int, frame: object) -> None:
    raise _Terminated


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    debug = "--debug" in arguments
    rest = [argument for argument in arguments if argument != "--debug"]
    try:
        return app(in_pairs(rest), exit_on_error=False, print_error=False, result_action="return_value") or 0
    except CycloptsError as error:
        show(f"brittle: {explained(error, rest)}", sys.stderr)
        return UsageError.exit_code
    except BrittleError as error:
        if debug:
            raise
        print(f"brittle: {error}", file=sys.stderr)
        return error.exit_code
    except MemoryError:
        if debug:
            raise
        print(f"brittle: out_of_memory: {_NO_MEMORY}; {_AFTER}", file=sys.stderr)
        return ModelError.exit_code
    except KeyboardInterrupt:
        print(f"brittle: interrupted; {_AFTER}", file=sys.stderr)
        return INTERRUPTED
    except _Terminated:
        print(f"brittle: terminated; {_AFTER}", file=sys.stderr)
        return TERMINATED


@app.command
def demo(*, out: Path = Path("brittle-demo"), full: Annotated[bool, Flag] = False, quiet: Quiet = False) -> int:
    """Train a small network on real digits, score its test points, write a report and show what was found.

    Parameters
    ----------
    out
        Folder for the network, its test points, the run and the report.
    full
        Score all test points by all scores but rare_event at three sigmas, which takes minutes.
    """
    from brittle.cli.demo import full as full_demo
    from brittle.cli.demo import short
    from brittle.store.files.writing import check_folder
    from brittle.store.folder import check_free

    check_folder(out / "run")
    check_free(out / "run")
    _check_page(out / "report.html")
    if not full:
        return short(out, quiet, _score)
    return full_demo(out, quiet, _score) or report(out / "run", out=out / "report.html")


@app.command
def report(
    run_folder: Annotated[Path, Parameter(name="run")],
    *,
    out: Path | None = None,
    epsilon: str | None = None,
    against: Annotated[tuple[Path, ...], Many] = (),
) -> int:
    """Write the report of RUN, one HTML file, and print how the estimators and the margins compare.

    Where the run has a Laplacian, how well it predicts the sampled change and the flips is printed as well.

    Parameters
    ----------
    run_folder
        A folder that `brittle score` wrote.
    out
        The file to write; RUN/report.html by default; no file but an earlier report is replaced.
    epsilon
        Size of the perturbation that the worst case is about, such as 8/255.
    against
        Other runs over the same points to compare with: of other models, or of the same one on corrupted copies.
    """
    from brittle.analysis import margin_columns
    from brittle.cli.printed import named, texts
    from brittle.report import open_contents, write_page

    page = out or run_folder / "report.html"
    _check_page(page)
    table = open_run(run_folder)
    if epsilon is not None and not margin_columns(table):
        raise UsageError("--epsilon is for runs with input_margin; this one has none")
    contents = open_contents(table, epsilon, named(against))
    path = write_page(contents, page)
    for text in texts(contents):
        show(text)
    print(path)
    older = run_folder.absolute().parent / "report.html"
    if out is None and _is_page(older):
        show(f"brittle: note: {older} is an older page; that of the run as it is now is {path}", sys.stderr)
    return 0


@app.command(name="list")
def list_scores() -> int:
    """Show the scores of brittle and of installed packages: name, what it is, value, cost, source."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    from brittle.scores import CATALOGUE
    from brittle.scores.outside import installed_scores

    installed, faults = installed_scores()
    grid = Grid("name", "what it is", "value", "passes per point", "source", box=box.SIMPLE_HEAD)
    for name, kind in {**CATALOGUE, **installed}.items():
        grid.add_row(name, kind.title, kind.quantity, kind.cost, kind.reference)
    Console(width=None if sys.stdout.isatty() else 180).print(grid)
    for fault in faults:
        show(f"brittle: note: {fault}", sys.stderr)
    return 0


def _score(words: Sequence[str]) -> int:
    """Do what `brittle score` does with these words, and record them as the command of the run; the exit code."""
    from brittle.cli.score import scored

    _, given, _ = app.parse_args(["score", *in_pairs(words)], exit_on_error=False, print_error=False)
    return scored(("brittle", "score", *words), *given.args, **given.kwargs, inside=True)


def _is_page(path: Path) -> bool:
    """Whether a report lies there."""
    from brittle.report import MARK

    try:
        check_own(path, MARK, "report")
    except StorageError:
        return False
    return path.is_file()


def _check_page(path: Path) -> None:
    """Raise, before anything is computed, where a file is there that is no report."""
    from brittle.report import MARK

    check_own(path, MARK, "report")
