"""Which points, in which order: by any score, of a class, of a kind."""

from __future__ import annotations

from typing import Literal

import pandas as pd

from brittle.analysis.columns import check_column, class_name, class_of, preferred, safety
from brittle.analysis.decisions import STATES, column_for, numbers_beside
from brittle.analysis.overview import FAILED
from brittle.errors import DataError, ParameterError, listed
from brittle.estimate import LIMIT
from brittle.intervals import check_share
from brittle.store.columns import Column
from brittle.store.table import Table
from brittle.text import aligned, chosen_text, number, span

Correct = Literal["right", "wrong"]

_SHOWN = ("point", "row", "name", "label", "predicted", "target", "decided", "correct")


def point_list(
    table: Table,
    by: Column | None = None,
    *,
    of_class: str | int | None = None,
    state: str | None = None,
    correct: Correct | None = None,
    limit: float | None = None,
    judge: Column | None = None,
) -> pd.DataFrame:
    """The points of a run, the least safe by a score first.

    The order is that of the values as they are recorded, which tells flip probabilities apart however small they are.
    Points that tie, such as those that no Monte Carlo draw flipped, are ordered by the next estimator in the list of
    preference, then by their place in the data.

    Args:
        table: a run.
        by: the column that orders them; by default the flip probability that speaks for the run, or where points were
            drawn for the limit what stands beside their states (`numbers_beside`). Points without a number come last.
        of_class: only those of a class, by its name or its number: of the label, or without labels of the prediction.
        state: only those that are `holds`, `breaks` or `undecided` by `judge`, where that is a flip probability; or
            `failed`, without a number. A score that no noise was drawn for, such as `softmax`, holds and breaks none.
        correct: only those that are `right` or `wrong`.
        limit: what the states compare `p_robust` with; by default the one of the column, else `LIMIT`.
        judge: the column that the states are of; by default `by`, or without one the column drawn for the limit.

    Returns:
        `point`, `row`, `name`, `label`, `predicted`, `target` and `decided` (the words for both, where they are no
        classes), `correct`, `value` (`p_robust` of a flip probability) with its interval `low`, `high`, `state` (None
        where `by` is no flip probability), `status`.

    Raises:
        DataError: the run has no such class, no label, or no flip probability.
        ParameterError: the state is none, the limit is not between 0 and 1, or the score has no order.
    """
    check_column("by", by)
    check_column("judge", judge)
    check_share("limit", limit)
    if by is None:
        judge = judge if judge is not None else column_for(table, limit)
        by = numbers_beside(table, judge)
    if state not in (None, FAILED, *STATES):
        raise ParameterError(f"state is holds, breaks, undecided or failed; found {state!r:.40}")
    order, judge = safety(by), judge if judge is not None else by
    if order is None:
        raise ParameterError(f"{by.label} has no safer direction, so it orders no points; name another score")
    frame = table.points.select([*_SHOWN]).to_pandas().set_index("point", drop=False)
    frame[["value", "low", "high"]] = by.rows[["value", "low", "high"]]
    if by.is_probability:
        frame[["value", "low", "high"]] = 1.0 - by.rows[["value", "high", "low"]].to_numpy()
    frame["state"] = judge.states(limit or judge.limit or LIMIT) if judge.is_probability else None
    frame["status"] = by.status
    wanted = pd.Series(True, index=frame.index) if of_class is None else _in_class(table, of_class)
    if state is not None:
        wanted &= frame["value"].isna() if state == FAILED else frame["state"] == state
    if correct is not None:
        if frame["correct"].isna().all():
            raise DataError("no_labels", "no point of the run has a label, so none is known to be right or wrong")
        wanted &= frame["correct"].eq(correct == "right")
    second = preferred(table.columns, by.setting, exclude=by.score) if by.is_probability else None
    keys = {"danger": order, "second": 0.0 if second is None else -second.value}
    chosen = frame.assign(**keys)[wanted.to_numpy(dtype=bool)]
    return chosen.sort_values([*keys, "row"], na_position="last", ignore_index=True).drop(columns=[*keys])


def format_point_list(frame: pd.DataFrame, table: Table, by: Column, top: int, judge: Column | None = None) -> str:
    """The first points of a `point_list` as plain text for a terminal."""
    names = table.record.data.names

    def class_text(key: float, words: object) -> str:
        if key != key:
            return words if isinstance(words, str) and words else "-"
        return names[int(key)] if 0 <= key < len(names) else str(int(key))

    rows = [
        [
            str(row["point"]) if pd.isna(row["name"]) else f"{row['point']} {row['name']}",
            class_text(row["label"], row["target"]),
            class_text(row["predicted"], row["decided"]),
            number(row["value"]),
            span(row["low"], row["high"]),
            row["state"] or "",
            row["status"],
        ]
        for row in frame.head(top).to_dict("records")
    ]
    title = "p_robust" if by.is_probability else by.quantity.replace("_", " ")
    header = ["point", "label", "predicted", title, "interval", "state", "status"]
    chosen = chosen_text(len(by), table.record.data)
    states = "" if judge is None or judge is by else f", states by {judge.shown}"
    which = f"{len(frame):,} of {len(by):,} points{chosen and f' ({chosen})'}"
    more = [f"  and {len(frame) - top:,} more; --top shows them"] if len(frame) > top else []
    return "\n".join([f"{which}, the least safe by {by.shown} first{states}", *aligned([header, *rows]), *more])


def _in_class(table: Table, of_class: str | int) -> pd.Series:
    """Whether each point is in a class, named by its name or its number."""
    names = table.record.data.names
    classes = class_of(table)[1]
    name = str(of_class) if of_class in names else str(of_class).removeprefix("class ")
    asked = names.index(name) if name in names else name
    found = classes.map(lambda key: key == key and (int(key) == asked or str(int(key)) == asked)).astype(bool)
    if not found.any():
        seen = listed([class_name(table, int(key)) for key in sorted(classes.dropna().unique())], 5) or "none"
        raise DataError("no_such_point", f"no point of the run is in class {str(of_class)!r:.60}; classes: {seen}")
    return found
