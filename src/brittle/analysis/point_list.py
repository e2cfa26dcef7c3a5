"""Which points, in which order: by any score, of a class, of a kind."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.columns import check_column, class_name, class_of, safety
from brittle.analysis.decisions import STATES, column_for, numbers_beside
from brittle.analysis.overview import FAILED, LIMIT
from brittle.errors import DataError, ParameterError, listed
from brittle.intervals import check_share
from brittle.store.columns import Column, Scored
from brittle.text import aligned, chosen_text, number, span

Correct = Literal["right", "wrong"]


def point_list(
    table: Scored,
    by: Column | None = None,
    *,
    of_class: str | int | None = None,
    state: str | None = None,
    correct: Correct | None = None,
    limit: float | None = None,
    judge: Column | None = None,
) -> pd.DataFrame:
    """The points of a run, the least safe by a score first.

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
        `point`, `row`, `name`, `label`, `predicted`, `correct`, `value` (`p_robust` of a flip probability) with its
        interval `low`, `high`, `state` (None where `by` is no flip probability), `status`.

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
    frame = _frame(table, by, judge if judge is not None else by, limit)
    wanted = np.ones(len(frame), dtype=bool) if of_class is None else _in_class(table, of_class)
    if state is not None:
        wanted = wanted & (frame["value"].isna() if state == FAILED else frame["state"] == state).to_numpy(dtype=bool)
    if correct is not None:
        if table.points["correct"].null_count == len(table.points):
            raise DataError("no_labels", "no point of the run has a label, so none is known to be right or wrong")
        wanted = wanted & np.array(
            [one is (correct == "right") for one in table.points["correct"].to_pylist()], dtype=bool
        )
    order = frame.loc[wanted].sort_values(["danger", "row"], na_position="last", ignore_index=True)
    return order.drop(columns="danger")


def format_point_list(frame: pd.DataFrame, table: Scored, by: Column, top: int, judge: Column | None = None) -> str:
    """The first points of a `point_list` as plain text for a terminal."""
    names = table.record.data.names

    def class_text(key: float, words: object) -> str:
        if key != key:
            return words if isinstance(words, str) and words else "-"
        return names[int(key)] if 0 <= key < len(names) else str(int(key))

    title = "p_robust" if by.is_probability else by.quantity.replace("_", " ")
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
    chosen = chosen_text(len(by), table.record.data.chosen_from)
    header = ["point", "label", "predicted", title, "interval", "state", "status"]
    states = "" if judge is None or judge is by else f", states by {judge.shown}"
    which = f"{len(frame):,} of {len(by):,} points{chosen and f' ({chosen})'}"
    more = [f"  and {len(frame) - top:,} more; --top shows them"] if len(frame) > top else []
    return "\n".join([f"{which}, the least safe by {by.shown} first{states}", *aligned([header, *rows]), *more])


def _frame(table: Scored, by: Column, judge: Column, limit: float | None) -> pd.DataFrame:
    """All points with what is shown of them, and `danger`, which orders them."""
    order = safety(by)
    if order is None:
        raise ParameterError(f"{by.label} has no safer direction, so it orders no points; name another score")
    shown = ["point", "row", "name", "label", "predicted", "target", "decided", "correct"]
    frame = table.points.select(shown).to_pandas()
    rows = by.rows.reset_index(drop=True)
    value, low, high = (rows[name] for name in ("value", "low", "high"))
    if by.is_probability:
        value, low, high = 1.0 - value, 1.0 - high, 1.0 - low
    frame = frame.assign(value=value, low=low, high=high, state=None, status=rows["status"])
    if judge.is_probability:
        frame["state"] = judge.states(limit or judge.limit or LIMIT).to_numpy()
    return frame.assign(danger=order.to_numpy())


def _in_class(table: Scored, of_class: str | int) -> NDArray[np.bool_]:
    """Whether each point is in a class, named by its name or its number; `[N]`."""
    names = table.record.data.names
    classes = class_of(table)[1]
    name = str(of_class) if of_class in names else str(of_class).removeprefix("class ")
    asked = names.index(name) if name in names else name
    found = classes.map(lambda key: key == key and (int(key) == asked or str(int(key)) == asked)).to_numpy(dtype=bool)
    if not found.any():
        seen = listed([class_name(table, int(key)) for key in sorted(classes.dropna().unique())], 5) or "none"
        raise DataError("no_such_point", f"no point of the run is in class {str(of_class)!r:.60}; classes: {seen}")
    return found
