"""Which evaluations got no number, or one with a remark, and why?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from brittle.estimate import Status
from brittle.store.columns import BULKY, WITHOUT_VALUE, Row, Scored

_FIELDS = ("labels", "status", "sentence", "has_value", "points", "first")
_STATUS = {status.slug: status for status in Status}


def outcomes(table: Scored, first: int = 5) -> pd.DataFrame:
    """Every status other than `ok`, with the points and the scores that it befell.

    A status that came with a number at some points and without one at others has a row for either.

    A point that could not be evaluated at all is counted once, not once for each score; scores that report one status
    for the same points share a row.

    Args:
        table: a run.
        first: how many of the points to name.

    Returns:
        `labels` of the scores (empty where the point itself is meant), `status`, `sentence`, `has_value` (whether a
        number was given all the same), `points` (how many) and `first` (a list of `(row, name, detail)`), those
        without a number first.
    """
    points = table.points.drop_columns(list(BULKY)).to_pandas().set_index("point")
    valued = [_is_valued(str(status)) for status in points["status"]]
    rows = list(_outcomes(points, points, valued, first).values())
    scores: dict[tuple[str, tuple[str, ...]], Row] = {}
    for column in table.columns:
        evaluated = column.rows.loc[valued, :]
        numbers = [number == number for number in evaluated["value"]]
        for key, row in _outcomes(evaluated, points, numbers, first).items():
            scores.setdefault(key, row)["labels"] += (column.label,)
    frame = pd.DataFrame([*rows, *scores.values()], columns=_FIELDS)
    return frame.sort_values("has_value", kind="stable", ignore_index=True)


def sentence(slug: str) -> str:
    """The status `slug` in words."""
    return _STATUS[slug].sentence if slug in _STATUS else f"Status {slug}, which this version does not know."


def _is_valued(slug: str) -> bool:
    return slug not in WITHOUT_VALUE


def _outcomes(
    rows: pd.DataFrame, points: pd.DataFrame, valued: Sequence[bool], first: int
) -> dict[tuple[str, tuple[str, ...]], Row]:
    """The statuses of `rows` other than `ok`, by status and the points that have it."""
    found = rows[["status", "detail"]].assign(
        row=points["row"].reindex(rows.index), name=points["name"].reindex(rows.index), valued=valued
    )
    remarkable = found[found["status"].notna() & (found["status"] != Status.OK.slug)]
    groups = [
        (str(slug), valued, group)
        for (valued, part) in remarkable.groupby("valued")
        for slug, group in part.groupby("status")
    ]
    return {
        (slug, tuple(group.index)): {
            "labels": (),
            "status": slug,
            "sentence": sentence(slug),
            "has_value": bool(valued),
            "points": len(group),
            "first": list(zip(*(group[field][:first] for field in ("row", "name", "detail")), strict=True)),
        }
        for slug, valued, group in groups
    }
