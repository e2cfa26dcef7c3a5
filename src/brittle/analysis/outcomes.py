"""Evaluations without a number, or with a remark, and their reasons; refuted certificates."""

from collections.abc import Iterable
from typing import cast

import pandas as pd

from brittle.estimate import Status
from brittle.store.columns import BULKY, WITHOUT_VALUE, Column, Row
from brittle.store.table import Table
from brittle.text import by_number

_FIELDS = ("labels", "status", "sentence", "has_value", "points", "first")
_SENTENCES = {status.slug: status.sentence for status in Status}


def outcomes(table: Table, examples: int = 5) -> pd.DataFrame:
    """Every status other than `ok`, with its points and its scores, by whether it came with a number.

    A point that could not be evaluated at all is counted once; scores that report one status for the same points share
    a row.

    Args:
        table: a run.
        examples: how many of the points to name.

    Returns:
        `labels` of the scores (empty where the point itself is meant), `status`, `sentence`, `has_value` (whether a
        number was given all the same), `points` (how many) and `first` (a list of `(row, name, detail)`), those
        without a number first.
    """
    points = table.points.drop_columns(list(BULKY)).to_pandas().set_index("point")
    valued = ~points["status"].isin(list(WITHOUT_VALUE))
    rows = list(_outcomes(points, points, valued, examples).values())
    scores: dict[tuple[str, tuple[str, ...]], Row] = {}
    for column in table.columns:
        evaluated = column.rows.loc[valued.to_numpy()]
        for key, row in _outcomes(evaluated, points, evaluated["value"].notna(), examples).items():
            scores.setdefault(key, row)["labels"] += (column.label,)
    frame = pd.DataFrame([*rows, *scores.values()], columns=_FIELDS)
    return frame.sort_values("has_value", kind="stable", ignore_index=True)


def _outcomes(
    rows: pd.DataFrame, points: pd.DataFrame, valued: pd.Series, examples: int
) -> dict[tuple[str, tuple[str, ...]], Row]:
    """Return the statuses of `rows` other than `ok`, by status and the points that have it."""
    table = rows[["status", "detail"]].join(points[["row", "name"]]).assign(valued=valued)
    remarkable = table[table["status"].notna() & (table["status"] != Status.OK.slug)]
    groups = cast("Iterable[tuple[tuple[bool, str], pd.DataFrame]]", remarkable.groupby(["valued", "status"]))
    return {
        (slug, tuple(group.index)): {
            "labels": (),
            "status": slug,
            "sentence": _SENTENCES.get(slug, f"Status {slug}, which this version does not know."),
            "has_value": bool(has_value),
            "points": len(group),
            "first": [*group.head(examples)[["row", "name", "detail"]].itertuples(index=False, name=None)],
        }
        for (has_value, slug), group in groups
    }


def refuted_points(columns: Iterable[Column]) -> int:
    """Points of a run with a score whose certificate was refuted."""
    points: set[str] = set()
    for column in columns:
        points.update(column.rows.index[(column.status == Status.REFUTED.slug).to_numpy()])
    return len(points)


def refuted_text(points: int) -> str:
    """Explain that the certificates of so many points were refuted; empty for none."""
    if not points:
        return ""
    return (
        f"{by_number(points, 'The certificate of 1 point is', f'The certificates of {points:,} points are')} "
        "contradicted by what the attack found: another prediction, nearer than the radius that was certified. So the "
        "model computes something else than its layers say, or the proof is wrong. Nothing counts as certified at "
        f"{by_number(points, 'this point', 'these points')}, and no other certificate of the run should be relied on."
    )
