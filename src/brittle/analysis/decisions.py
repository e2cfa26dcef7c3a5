"""Does a prediction hold? Points that surely do, that surely do not, and that are undecided."""

from __future__ import annotations

import math

import pandas as pd

from brittle.analysis.columns import check_column, largest_budgets, typical
from brittle.analysis.text import aligned, number
from brittle.errors import DataError, ParameterError
from brittle.estimate import Evidence
from brittle.intervals import check_share, fewest_to_hold
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Column, Scored

STATES = (HOLDS, BREAKS, UNDECIDED)
"""What a point may be."""

KEPT = 2000
"""The first stage of draws by need has three tenths of the draws, and at most so many."""

MORE_DRAWS = 10
"""How many times the draws of a run that left points undecided are worth spending on those."""


def decide(table: Scored, limit: float | None = None, column: Column | None = None) -> pd.DataFrame:
    """Whether the prediction of each point is kept with probability `limit` or more under the noise of a column.

    `holds` where the whole interval of `p_robust` lies at `limit` or above, `breaks` where it lies below, `undecided`
    where it reaches over `limit`. A state is as sure as the interval: where it is counted
    (`brittle.score(..., until="decided", limit=0.9)`), at most `1 - confidence` of the points get a wrong one in the
    mean, for every network.

    Args:
        table: a run.
        limit: between 0 and 1; by default the one that the points of the column were drawn for.
        column: the flip probability to read, such as `table["monte_carlo", 0.1]`; by default the one that was drawn for
            this limit, and where there is none the one that speaks for the run.

    Returns:
        `point`, `state` (None where a point has no number) and `draws` (noisy copies that the column looked at; NaN
        where it looked at none), in the order of the data.

    Raises:
        ParameterError: the limit is not between 0 and 1, or neither given nor known.
        DataError: the run holds no flip probability under noise, or `column` is none.
    """
    check_column("column", column)
    check_share("limit", limit)
    column = column if column is not None else column_for(table, limit)
    limit = column.limit if limit is None else limit
    if limit is None:
        raise ParameterError("limit", f"{column.label} was not drawn for a limit; give one, such as limit=0.9")
    if column.is_probability and not column.judges and column.value.notna().any():
        raise DataError("no_such_score", f"{unjudged_text(column)}; score the points under noise, such as by shrinkage")
    frame = pd.DataFrame({"state": column.states(limit), "draws": drawn(column)})
    return frame.rename_axis("point").reset_index()


def unjudged_text(column: Column) -> str:
    """Why a column that judges no point (`Column.judges`) says of none that it holds or breaks."""
    return f"{column.title} is no measurement under noise: it has no interval, so no point is held or broken by it"


def column_for(table: Scored, limit: float | None = None, sigma: float | None = None) -> Column:
    """The flip probability that answers for `limit`: one that was drawn for it, else the one that speaks for the run.

    Of several that were drawn for it, the one at the noise that speaks for the run, and rather one that no precision
    stopped. With `sigma` only columns at that noise level.

    Raises:
        DataError: the run holds none.
    """
    found = column_if_any(table, limit, sigma)
    if found is None:
        at = "" if sigma is None else f" at sigma {sigma:g}"
        raise DataError("no_such_score", f"the run holds no flip probability{at}; score it by one, such as moments")
    return found


def column_if_any(table: Scored, limit: float | None = None, sigma: float | None = None) -> Column | None:
    """As `column_for`; None where the run holds no flip probability with a value."""
    columns = [one for one in table.columns if sigma is None or one.setting.sigma == sigma]
    spoken = typical(columns)
    drawn_for = [one for one in columns if one.is_probability and one.limit is not None]
    fitting = [one for one in drawn_for if limit in (None, one.limit) and one.value.notna().any()]
    elsewhere = [spoken is None or one.setting != spoken.setting for one in fitting]
    ranked = sorted(
        zip(elsewhere, ["precision" in one.parameters for one in fitting], range(len(fitting)), strict=True)
    )
    return fitting[ranked[0][2]] if ranked else spoken


def numbers_beside(table: Scored, judge: Column) -> Column:
    """The column whose values and intervals stand beside the states of `judge`: mostly `judge` itself.

    Points that were drawn for a limit stop once they are decided, those that break after a few copies, so that their
    numbers are coarse. Where the run also counts, under the same noise, at every point as many independent copies or
    pairs as `judge` takes at least before a point holds, the numbers are those of that column; of several the one that
    rather speaks for a run. Which one that is follows from what was asked for and not from what was drawn. So every
    interval and every state is as sure as its own column: nothing is chosen by what it says.
    """
    if judge.limit is None:
        return judge
    fewest = fewest_to_hold(judge.limit, table.record.confidence)
    fitting = [
        one
        for one in largest_budgets(table.columns)
        if one.setting == judge.setting and one.preference is not None and _counted_everywhere(one) >= fewest
    ]
    return min(fitting, key=lambda one: one.preference or 0.0, default=judge)


def _counted_everywhere(column: Column) -> int:
    """How many independent copies or pairs every point has in a column whose intervals count them; 0 for another."""
    counts = set(column.rests_on[column.value.notna()]) == {Evidence.COUNTED.slug}
    if not counts or column.most_draws is None or column.limit is not None:
        return 0
    if column.parameters.get("adaptive") is True:
        return min(3 * column.most_draws // 10, KEPT)
    return 0 if column.stops else column.most_draws // 2


def drawn(column: Column) -> pd.Series:
    """How many noisy copies of each point a column looked at; NaN where it looked at none."""
    if column.stops:
        return (column.passes - 1.0).where(column.value.notna())  # all but the clean pass
    return column.value.where(column.value.isna(), math.nan if column.draws is None else column.draws)


def decisions(table: Scored) -> pd.DataFrame:
    """How many points hold, break and are undecided, for each column whose points were drawn for a limit.

    Returns:
        `label`, `limit`, `holds`, `breaks`, `undecided`, `points`, `draws` (mean over the points), `most` (draws that a
        point could have).
    """
    rows = []
    for column in table.columns:
        if column.is_probability and column.limit is not None:
            states = column.states(column.limit).tolist()
            counts = {state: states.count(state) for state in STATES}
            mean = float(drawn(column).mean())
            named = {"label": column.label, "limit": column.limit}
            rows.append(
                named | counts | {"points": sum(counts.values()), "draws": mean, "most": column.parameters["draws"]}
            )
    return pd.DataFrame(rows, columns=["label", "limit", *STATES, "points", "draws", "most"])


def format_decisions(frame: pd.DataFrame) -> str:
    """The result of `decisions` as text for a terminal; empty without any."""
    if frame.empty:
        return ""
    header = ["does it hold?", "limit", *STATES, "draws a point", "at most"]
    rows = [
        [
            row["label"],
            f"{row['limit']:g}",
            *(str(row[state]) for state in STATES),
            number(row["draws"]),
            str(row["most"]),
        ]
        for row in frame.to_dict("records")
    ]
    return "\n".join(aligned([header, *rows]))
