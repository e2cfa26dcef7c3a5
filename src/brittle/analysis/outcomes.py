"""Which evaluations got no number, or one with a remark, and why? What certificates cost, and which were refuted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pandas as pd

from brittle.estimate import Status
from brittle.store.columns import BULKY, WITHOUT_VALUE, Column, Row, Scored
from brittle.text import by_number

_FIELDS = ("labels", "status", "sentence", "has_value", "points", "first")
_STATUS = {status.slug: status for status in Status}

_SPENT = re.compile(r"([\d,]+) of the passes for the certificate")
"""How the detail of a point says what its certificate took; `brittle.scores.input_margin` writes it."""

_DECIDING = ("norm", "bounded", "certify", "proof", "label")
"""Parameters of a score on which its certificate depends: scores that agree in them share it."""


def outcomes(table: Scored, first: int = 5) -> pd.DataFrame:
    """Every status other than `ok`, with its points and its scores.

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
    valued = [str(status) not in WITHOUT_VALUE for status in points["status"]]
    rows = list(_outcomes(points, points, valued, first).values())
    scores: dict[tuple[str, tuple[str, ...]], Row] = {}
    for column in table.columns:
        evaluated = column.rows.loc[valued, :]
        for key, row in _outcomes(evaluated, points, evaluated["value"].notna().tolist(), first).items():
            scores.setdefault(key, row)["labels"] += (column.label,)
    frame = pd.DataFrame([*rows, *scores.values()], columns=_FIELDS)
    return frame.sort_values("has_value", kind="stable", ignore_index=True)


def _outcomes(
    rows: pd.DataFrame, points: pd.DataFrame, valued: Sequence[bool], first: int
) -> dict[tuple[str, tuple[str, ...]], Row]:
    """The statuses of `rows` other than `ok`, by status and the points that have it."""
    found = rows[["status", "detail"]].assign(
        row=points["row"].reindex(rows.index), name=points["name"].reindex(rows.index), valued=valued
    )
    remarkable = found[found["status"].notna() & (found["status"] != Status.OK.slug)]
    return {
        (str(slug), tuple(group.index)): {
            "labels": (),
            "status": slug,
            "sentence": _sentence(str(slug)),
            "has_value": bool(valued),
            "points": len(group),
            "first": list(zip(*(group[field][:first] for field in ("row", "name", "detail")), strict=True)),
        }
        for valued, part in remarkable.groupby("valued")
        for slug, group in part.groupby("status")
    }


def _sentence(slug: str) -> str:
    return _STATUS[slug].sentence if slug in _STATUS else f"Status {slug}, which this version does not know."


def certificate_passes(columns: Iterable[Column]) -> int:
    """Passes that the certificates of a run took, those that several scores share once; 0 where it has none."""
    spent: dict[tuple[object, ...], int] = {}
    for column in columns:
        if column.parameters.get("certify"):
            found = (_SPENT.search(detail) for detail in column.rows["detail"].dropna())
            key = tuple(column.parameters.get(name) for name in _DECIDING)
            spent[key] = sum(int(one[1].replace(",", "")) for one in found if one is not None)
    return sum(spent.values())


def certificates_text(columns: Iterable[Column]) -> str:
    """How many of the passes were those of certificates, as it stands in a sentence; empty where none were."""
    passes = certificate_passes(columns)
    return f"{passes:,} of them on certificates" if passes else ""


def refuted_points(columns: Iterable[Column]) -> int:
    """Points of a run with a score whose certificate was refuted."""
    found: set[str] = set()
    for column in columns:
        found.update(column.rows.index[(column.status == Status.REFUTED.slug).to_numpy()])
    return len(found)


def refuted_text(points: int) -> str:
    """What it means that the certificates of so many points were refuted; empty where none was."""
    if not points:
        return ""
    return (
        f"{by_number(points, 'The certificate of 1 point is', f'The certificates of {points:,} points are')} "
        "contradicted by what the attack found: another prediction, nearer than the radius that was certified. So the "
        "model computes something else than its layers say, or the proof is wrong. Nothing counts as certified at "
        f"{by_number(points, 'this point', 'these points')}, and no other certificate of the run should be relied on."
    )
