"""The demo in a minute: some points of the digits by some scores at one sigma, and what they say on one screen."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App

from brittle.cli.common import Flag, check_own, program, say, show
from brittle.cli.options import Quiet

POINTS = 200
"""Digits that are scored."""

SIGMA = 0.2
DRAWS = 500

SCORES = (
    *("monte_carlo", "shrinkage", "taylor", "softmax"),
    *("input_margin", "first_order_margin", "logit_margin"),
    *("laplacian", "probability_change", "first_order_change"),
)
"""Some of each view: average case, worst case, expected change."""


def demo(*, out: Path = Path("brittle-demo"), full: Annotated[bool, Flag] = False, quiet: Quiet = False) -> int:
    """Train a small network on real digits, score its test points, write a report and show what was found.

    Parameters
    ----------
    out
        Folder for the network, its test points, the run and the report.
    full
        Score all test points by all scores but rare_event at three sigmas, which takes minutes.
    """
    from brittle.cli import digits
    from brittle.cli.runs import report
    from brittle.cli.runs import show as show_run
    from brittle.report import MARK, write_report
    from brittle.store.folder import check_free
    from brittle.store.reading import read_table
    from brittle.store.writing import check_folder

    check_folder(out / "run")
    check_free(out / "run")
    check_own(out / "report.html", MARK, "report")
    if full:
        code = _score(_prepared(out, quiet, digits.SCORES, digits.SIGMAS, digits.DRAWS))
        return code or report(out / "run", out=out / "report.html")
    with digits.one_thread():
        code = _score(_prepared(out, quiet, SCORES, (SIGMA,), DRAWS, POINTS))
    if code:
        return code
    say(quiet, "writing the report")
    path = write_report(read_table(out / "run"), out / "report.html")
    show_run(out / "run")
    name = program()
    show(f"\nreport: {path}, to be opened in a browser")
    show(f"more scores, {digits.TEST_POINTS} digits, 3 sigmas, in minutes:")
    show(f"    {name} demo --full --out {shlex.quote(f'{out}-full')}")
    show("a file of your network, one of your data, a new folder:")
    show(f"    {name} score MODEL DATA --out RUN")
    return 0


def _score(words: Sequence[str]) -> int:
    """Do what `brittle score` does with these words, and record them as the command of the run; the exit code."""
    from brittle.cli.score import score, scored

    _, given, _ = App(default_command=score).parse_args(words, exit_on_error=False, print_error=False)
    return scored(("score", *words), *given.args, **given.kwargs, inside=True)


def _prepared(
    out: Path, quiet: bool, scores: Sequence[str], sigmas: Sequence[float], draws: int, points: int | None = None
) -> list[str]:
    """Train the network and write it with its test points; what `brittle score` is given to score these."""
    from brittle.cli import digits

    say(quiet, "training a small network on scikit-learn's digits")
    model, data = digits.prepare(out)
    first = [] if points is None else ["--points", str(points)]
    noise = ["--sigma", *map(str, sigmas), "--draws", str(draws)]
    words = [str(model), str(data), "--out", str(out / "run"), *first, "--scores", *scores, *noise, "--effort", "fast"]
    return [*words, *(["--quiet"] if quiet else [])]
