"""A demo of a minute: some digits, some scores at one sigma, and their findings on one screen."""

from pathlib import Path

from cyclopts import App

from brittle.cli.common import AS_TYPED, Quiet, check_own, program, say, show
from brittle.registry import is_installed, load

POINTS = 200  # number of digits to score

SIGMA = 0.2

SCORES = (
    *("monte_carlo", "shrinkage", "taylor", "softmax"),
    *("input_margin", "first_order_margin", "logit_margin"),
    *("laplacian", "probability_change", "first_order_change"),
)
"""Scores of each view: average case, worst case, expected change."""


def demo(*, out: Path = Path("brittle-demo"), quiet: Quiet = False) -> int:
    """Train a small network on real digits, score its test points, write a report and show what was found.

    Args:
        out: Folder for the network, its test points, the run and the report.
    """
    from brittle.cli.runs import show as show_run
    from brittle.cli.score import score
    from brittle.extensions.demo import digits
    from brittle.model.evaluation_mode import one_thread
    from brittle.scores.catalogue import CATALOGUE
    from brittle.store.folder import RunFolder
    from brittle.store.reading import read_table

    run, page = out / "run", out / "report.html"
    RunFolder(run).check_free()
    if is_installed("report"):
        check_own(page, load("view", "mark"), "report")
    with one_thread():
        say(quiet, "training a small network on scikit-learn's digits")
        model, data = digits.prepare(out)
        scores = [name for name in SCORES if name in CATALOGUE]
        words = [str(model), str(data), "--out", str(run), "--points", str(POINTS), "--scores", *scores]
        words += ["--sigma", str(SIGMA), "--effort", "fast", *["--quiet"] * quiet]
        app = App(default_command=score, default_parameter=AS_TYPED)
        _, arguments, _ = app.parse_args(words, exit_on_error=False, print_error=False)
        code = score(*arguments.args, **arguments.kwargs, inside=("score", *words))
    if code:
        return code
    if is_installed("report"):
        say(quiet, "writing the report")
        read_table(run).report(page)
    show_run(run)
    name = program()
    if is_installed("report"):
        show(f"\nreport: {page}, to be opened in a browser")
    show("a file of your network, one of your data, a new folder:")
    show(f"    {name} score MODEL DATA --out RUN")
    return 0
