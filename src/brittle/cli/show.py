"""The command that shows a run in a terminal: one screen, its points in an order, or one point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from brittle.cli.common import Flag, open_run
from brittle.cli.common import show as print_lines
from brittle.errors import UsageError, listed

TOP = 20
"""Points in a list, unless another number is asked for."""


def show(
    run_folder: Annotated[Path, Parameter(name="run")],
    point: str | None = None,
    /,
    *,
    top: int | None = None,
    by: str | None = None,
    of_class: Annotated[str | None, Parameter(name="--class")] = None,
    state: Literal["holds", "breaks", "undecided", "failed"] | None = None,
    right: Annotated[bool, Flag] = False,
    wrong: Annotated[bool, Flag] = False,
    limit: float | None = None,
    sigma: float | None = None,
) -> int:
    """Show what RUN found: on one screen, as a list of points, or for one POINT.

    The screen says how many predictions hold and break, which classes, how sure that is, and what to do next. Any of
    the options --top, --by, --class, --state, --right and --wrong asks for a list instead.

    Parameters
    ----------
    run_folder
        A folder that `brittle score` wrote.
    point
        The id, the row or the name of a point: everything that the run says of it.
    top
        Points in the list; 20 by default.
    by
        The score that orders the list, the least safe point first: a name, at the noise that speaks for the run, or
        a label such as moments(draws=100, sigma=0.1). By default the flip probability that speaks for the run.
    of_class
        Only points of this class, by name or number.
    state
        Only points that hold, break or are undecided at --limit, or that have no number (failed).
    right
        Only points that are predicted right.
    wrong
        Only points that are predicted wrong.
    limit
        A prediction holds where it is kept with this probability or more; by default the one that points were drawn
        for, or 0.9.
    sigma
        The noise level to speak of, one of the run's; by default the one that tells its points apart best.
    """
    from brittle.analysis.overview import overview
    from brittle.analysis.overview_text import format_overview

    listing = top is not None or by or of_class or state or right or wrong
    if right and wrong:
        raise UsageError("--right and --wrong leave no point together; give one of them")
    if top is not None and top < 1:
        raise UsageError(f"--top takes a number of points, 1 or more; found {top}")
    if point is not None and (listing or limit is not None or sigma is not None):
        raise UsageError(f"POINT ({point}) shows one point and takes no option of a list; give one of both")
    table = open_run(run_folder)
    if sigma is not None and sigma not in {one.setting.sigma for one in table.columns}:
        known = (
            listed(sorted({one.setting.sigma for one in table.columns if one.setting.sigma is not None}), 5) or "none"
        )
        raise UsageError(f"no score of the run has sigma {sigma:g}; it has {known}")
    if point is not None:
        from brittle.analysis.point_card import find_point, format_point_card

        print_lines(format_point_card(table, find_point(table, point)))
    elif listing:
        from brittle.analysis.columns import named_column
        from brittle.analysis.decisions import column_for, numbers_beside
        from brittle.analysis.point_list import format_point_list, point_list

        at_level = [one for one in table.columns if sigma is None or one.setting.sigma in (sigma, None)]
        judge = named_column(at_level, by) if by else column_for(table, limit, sigma)
        column = judge if by else numbers_beside(table, judge)
        correct = "right" if right else "wrong" if wrong else None
        frame = point_list(table, column, of_class=of_class, state=state, correct=correct, limit=limit, judge=judge)
        print_lines(format_point_list(frame, table, column, top or TOP, judge))
    else:
        print_lines(format_overview(overview(table, limit, sigma=sigma), str(run_folder)))
    return 0
