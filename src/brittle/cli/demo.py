"""The demo in a minute: some points of the digits by some scores at one sigma, and what they say on one screen."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App

from brittle.cli.common import Flag, check_own, program, say, show
from brittle.cli.options import Quiet

if TYPE_CHECKING:
    import pandas as pd

    from brittle.store.table import Table

POINTS = 200
"""Digits that are scored."""

SIGMA = 0.2
DRAWS = 500

SAMPLED, NEAREST, MODEL = "monte_carlo", "input_margin", "softmax"
"""The scores that the screen shows: the flips that were counted, the nearest other digit, the network's own doubt."""

SCORES = (
    *(SAMPLED, "shrinkage", "taylor", MODEL),
    *(NEAREST, "first_order_margin", "logit_margin"),
    *("laplacian", "probability_change", "first_order_change"),
)
"""Some of each view: average case, worst case, expected change."""

ALLOWED = 0.1
"""A prediction holds where no more of its noisy copies than this share are predicted otherwise."""

SHOWN = 5
"""Least robust points in the table."""

WIDTH = 100
"""Longest line of the sentences."""


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
    table = read_table(out / "run")
    path = write_report(table, out / "report.html")
    name = program()
    show(summary(table))
    show(f"Report: {path}, to be opened in a browser")
    show(f"Next:   {name} show {shlex.quote(str(out / 'run'))}")
    show(f"        {name} demo --full --out {shlex.quote(f'{out}-full')}")
    show(f"        (more scores, {digits.TEST_POINTS} digits, 3 sigmas: minutes)")
    show(f"Yours:  {name} score MODEL DATA --out RUN (a file of your network, one of your data, a new folder)")
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


def summary(table: Table) -> str:
    """What the run found, in a few sentences and a table of the least robust points."""
    from brittle.scores import MonteCarlo
    from brittle.store.columns import BULKY
    from brittle.text import by_number

    points = table.points.drop_columns(list(BULKY)).to_pandas().set_index("point")
    flips = table[MonteCarlo(SIGMA, draws=DRAWS)].rows
    found = {SAMPLED: flips, NEAREST: table[NEAREST].rows, MODEL: table[MODEL].rows}
    holds = sum(high <= ALLOWED for high in flips["high"])
    breaks = sum(low > ALLOWED for low in flips["low"])
    passes = table.record.account.passes
    kept, lost = by_number(holds, "prediction holds", "predictions hold"), by_number(breaks, "breaks", "break")
    sentences = (
        f"The network reads {points['correct'].mean():.1%} of {len(points)} digits right. Under noise of "
        f"sigma {SIGMA:g} (pixels lie in [0, 1]) {holds} {kept} and {breaks} {lost}; of the other "
        f"{len(points) - holds - breaks} the {DRAWS} noisy copies do not tell. To hold is to survive at least "
        f"{1 - ALLOWED:.0%} of the noise. The least robust:"
    )
    cost = f"Cost:   {passes:,} passes through the network, {passes / len(points):,.0f} a point"
    return "\n".join(
        [textwrap.fill(sentences, WIDTH), "", *_least_robust(points, found, table.record.confidence), "", cost]
    )


def _least_robust(points: pd.DataFrame, found: Mapping[str, pd.DataFrame], confidence: float) -> list[str]:
    """The lines of a table: the points that flip most often, where they tie those nearest to another digit."""
    flips, nearest, model = (found[name] for name in (SAMPLED, NEAREST, MODEL))
    order = flips.assign(distance=nearest["value"]).sort_values(["value", "distance"], ascending=[False, True])
    interval = f"({confidence:.0%} interval)"
    lines = [f"  point  label  predicted  flips under noise {interval:>14}  nearest other digit  softmax doubts"]
    for point in order.index[:SHOWN]:
        row = flips.loc[point]
        share = f"{row['value']:.1%} ({row['low']:.1%} to {row['high']:.1%})"
        lines.append(
            f"  {point:>5}  {points['label'][point]:>5}  {points['predicted'][point]:>9}  {share:>32}"
            f"  {nearest['value'][point]:>19.3f}  {model['value'][point]:>14.1%}"
        )
    return lines
