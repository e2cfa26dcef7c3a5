"""Decisions about predictions: they hold, break, or are undecided."""

import math

import pandas as pd

from brittle.analysis.columns import check_column
from brittle.errors import DataError, ParameterError
from brittle.estimate import Evidence
from brittle.intervals import check_share
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Column
from brittle.store.representative import largest_budgets, representative_column
from brittle.store.schemas import unpack_votes
from brittle.store.table import Table

STATES = (HOLDS, BREAKS, UNDECIDED)  # states of a point
SHRINKAGE = "shrinkage"  # the score whose values mix a count and a model
MORE_DRAWS = 10  # factor on the draws of a run that are worth spending on its undecided points


def decide(table: Table, limit: float | None = None, column: Column | None = None) -> pd.DataFrame:
    """Return for each point whether its prediction is kept with probability `limit` or more under a column's noise.

    `holds` where the whole interval of `p_robust` lies at `limit` or above, `breaks` where it lies below, `undecided`
    where it reaches over `limit`. A state is as sure as the interval: where it is counted, at most `1 - confidence` of
    the points get a wrong one in the mean, for every network.

    Args:
        table: a run.
        limit: between 0 and 1; by default the one that the points of the column were drawn for.
        column: the flip probability to read, such as `table["monte_carlo", 0.1]`; by default that of `limit`.

    Returns:
        `point`, `state` (None where a point has no number) and `draws` (noisy copies that the column counted, without
        mirror images; NaN where it has none), in the order of the data.

    Raises:
        ParameterError: the limit is not between 0 and 1, or neither given nor known.
        DataError: the run holds no flip probability under noise, or `column` is none.
    """
    check_column("column", column)
    check_share("limit", limit)
    column = column if column is not None else column_for(table, limit)
    limit = column.limit if limit is None else limit
    if limit is None:
        raise ParameterError(f"{column.label} was not drawn for a limit; give one, such as limit=0.9")
    if column.is_probability and not column.is_decisive and column.value.notna().any():
        raise DataError("no_such_score", f"{unjudged_text(column)}; score the points under noise, such as by shrinkage")
    return pd.DataFrame({"state": column.states(limit), "draws": drawn(column)}).rename_axis("point").reset_index()


def unjudged_text(column: Column) -> str:
    """Explain why a column without intervals (`Column.is_decisive`) decides about no point."""
    return f"{column.title} is no measurement under noise: it has no interval, so no point is held or broken by it"


def column_for(table: Table, limit: float | None = None, sigma: float | None = None) -> Column:
    """Return the flip probability that answers for `limit`, at the noise level `sigma` if one is given."""
    column = representative_column(table.columns, limit, sigma)
    if column is None:
        at = "" if sigma is None else f" at sigma {sigma:g}"
        raise DataError("no_such_score", f"the run holds no flip probability{at}; score it with one, such as moments")
    return column


def numbers_beside(table: Table, judge: Column) -> Column:
    """Return the count whose numbers stand beside the states of `judge`, with means of no bias: mostly `judge` itself.
    Points that were drawn for a limit stop once they are decided, so that their numbers are coarse. Where the run also
    counts as many copies of each point under the same noise, it is that count."""
    if judge.limit is None:
        return judge
    kind = (judge.setting, judge.parameters.get("clip"))
    columns = [column for column in table.columns if column.is_probability]
    alike = [column for column in columns if (column.setting, column.parameters.get("clip")) == kind]
    fitting = [column for column in largest_budgets(alike) if _counts_copies(column) and not column.stops]
    return min(fitting, key=lambda column: column.preference or 0.0, default=judge)


def _counts_copies(column: Column) -> bool:
    """Return whether a column is representative and its values are counts; `SHRINKAGE` leans towards its own."""
    kinds = column.interval_evidence if column.score == SHRINKAGE else column.rows["evidence"]
    counts = set(kinds[column.value.notna()]) == {Evidence.COUNTED.slug}
    return counts and column.most_draws is not None and column.preference is not None


def drawn(column: Column) -> pd.Series:
    """Return how many noisy copies of each point a column counted, without mirror images; NaN where it has none."""
    if column.stops:
        copies = pd.Series(unpack_votes(column.votes).draws, index=column.value.index, dtype=float)
        return copies.where(column.value.notna() & (copies > 0))
    return column.value.where(column.value.isna(), math.nan if column.draws is None else column.draws)
