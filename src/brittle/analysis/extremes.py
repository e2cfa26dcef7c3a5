"""Which points are the most and the least robust?"""

from __future__ import annotations

import pandas as pd

from brittle.analysis.columns import class_of, preferred, typical
from brittle.store.columns import BULKY, Column, Scored

_FIELDS = (
    "point", "row", "name", "label", "predicted", "correct", "class", "p_robust", "flip_probability", "low", "high",
    "status", "evidence",
)  # fmt: skip


def ranked(table: Scored, column: Column | None = None) -> pd.DataFrame:
    """All points that have a robustness, the least robust first.

    The order is that of the flip probability, which tells points apart however near to 1 their robustness is. Points
    that tie, such as those that no Monte Carlo draw flipped, are ordered by the next estimator in the list of
    preference, then by their place in the data.

    Args:
        table: a run.
        column: the probability column to read; by default the one that speaks for the run.

    Returns:
        `point`, `row`, `name`, `label`, `predicted`, `correct`, `class` (the label, or without labels the prediction),
        `p_robust`, `flip_probability` with its interval `low`, `high`, `status`, `evidence`.
    """
    found = table.columns
    column = column or typical(found)
    if column is None:
        return pd.DataFrame(columns=_FIELDS)
    second = tie_breaker(found, column)
    frame = table.points.drop_columns([*BULKY, "status", "detail", "passes"]).to_pandas().set_index("point", drop=False)
    frame["class"] = class_of(table)[1]
    frame["p_robust"], frame["flip_probability"] = column.p_robust, column.value
    names = ["low", "high", "status", "evidence"]
    frame[names] = column.rows[names]
    frame["second"] = second.value if second is not None else 0.0
    frame = frame[frame["flip_probability"].notna()]
    order = frame.sort_values(["flip_probability", "second", "row"], ascending=[False, False, True], ignore_index=True)
    return order[list(_FIELDS)]


def extremes(table: Scored, count: int = 5, column: Column | None = None) -> pd.DataFrame:
    """The most and the least robust points of each class.

    The least robust are the first of `ranked`. The most robust are those whose flip probability is surely small: they
    are ordered by the upper end of its interval, so that a point whose interval says nothing does not stand first.

    A class with fewer than `2 * count` points is split in halves, so that no point is on both sides.

    Args:
        table: a run.
        count: points per class and side.
        column: the probability column to read; by default the one that speaks for the run.

    Returns:
        The columns of `ranked`, with `side` (`least` or `most`) and `rank` (1 for the extreme one), by class.
    """
    points = ranked(table, column)
    sides = [side for _, group in points.groupby("class") for side in _sides(group, count)]
    return pd.concat(sides, ignore_index=True) if sides else points.iloc[:0].assign(side=[], rank=[])


def tie_breaker(found: tuple[Column, ...], column: Column) -> Column | None:
    """The column that orders the points which tie in `column`; None where the run has no other."""
    return preferred(found, column.setting, exclude=column.score)


def _sides(group: pd.DataFrame, count: int) -> list[pd.DataFrame]:
    least = group.head(min(count, (len(group) + 1) // 2))
    others = group.iloc[len(least) :][::-1].sort_values("high", kind="stable", na_position="last")
    most = others.head(min(count, len(group) // 2))
    return [side.assign(side=name, rank=range(1, len(side) + 1)) for name, side in (("least", least), ("most", most))]
