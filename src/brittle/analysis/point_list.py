"""Lists of points, ordered by any score, of a class, of a kind."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from brittle.analysis.columns import check_column, class_name, class_of, safety
from brittle.analysis.decisions import STATES, column_for, numbers_beside
from brittle.analysis.overview import FAILED
from brittle.errors import DataError, ParameterError, listed
from brittle.estimate import LIMIT
from brittle.intervals import check_share
from brittle.store.columns import Column
from brittle.store.representative import preferred
from brittle.store.table import Table
from brittle.text import aligned, chosen_text, clipped, number, span

Correct = Literal["right", "wrong"]

_ORDER = ("danger", "second")  # keys that order points before their rows

_SHOWN = ("point", "row", "name", "label", "predicted", "target", "decided", "correct", "label_probability")


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
    """Return the points of a run, the least safe by a score first; of wrong ones the least probable label first.

    The order is that of the values as they are recorded, which tells flip probabilities apart however small they are.
    Points that tie, such as those that no Monte Carlo draw flipped, are ordered by the next estimator in the list of
    preference, then by their place in the data. Wrong points, without `by`, are ordered by the probability that the
    model gives their label: the first labels are the most suspicious (`docs/how-to/labels.md`).

    Args:
        table: a run.
        by: the column that orders them; by default the flip probability that speaks for the run (`numbers_beside`).
            Points without a number come last.
        of_class: only those of a class, by its name or its number: of the label, or without labels of the prediction.
        state: only those that are `holds`, `breaks` or `undecided` by `judge`; or `failed`, without a number.
        correct: only those that are `right` or `wrong`.
        limit: what the states compare `p_robust` with; by default the one of the column, else `LIMIT`.
        judge: the column that the states are of; by default `by`, or without one the column drawn for the limit.

    Returns:
        `point`, `row`, `name`, `label`, `predicted`, `target` and `decided` (the words for both, where they are no
        classes), `correct`, `label_probability` (where it orders the points), `value` (`p_robust` of a flip
        probability) with its interval `low`, `high`, `state` (None where `by` is no flip probability), `status`.

    Raises:
        DataError: the run has no such class, no label, or no flip probability.
        ParameterError: the state is none, the limit is not between 0 and 1, or the score has no order.
    """
    check_column("by", by)
    check_column("judge", judge)
    by_label = by is None and correct == "wrong"
    if by is None:
        judge = judge if judge is not None else column_for(table, limit)
        by = numbers_beside(table, judge)
    criteria = Wanted(of_class, state, correct, limit, by_label)
    return least_points([table], len(table.points), table, by, by if judge is None else judge, criteria)[0]


class Wanted(NamedTuple):
    """Criteria of a list, as the arguments of `point_list`; `by_label` puts the least probable label first."""

    of_class: str | int | None = None
    state: str | None = None
    correct: Correct | None = None
    limit: float | None = None
    by_label: bool = False


def least_points(
    shards: Iterable[Table], count_shown: int, table: Table, by: Column, judge: Column, criteria: Wanted
) -> tuple[pd.DataFrame, tuple[int, int]]:
    """Return the first `count_shown` points of a `point_list`, and how many it and the run have, one shard at a time.
    `by` and `judge` are columns of `table`, which is the run or a sample of it."""
    check_share("limit", criteria.limit)
    if criteria.state not in (None, FAILED, *STATES):
        raise ParameterError(f"state is holds, breaks, undecided or failed; found {criteria.state!r:.40}")
    if safety(by) is None:
        raise ParameterError(f"{by.label} has no safer direction, so it orders no points; name another score")
    (class_kind, _), names = class_of(table), table.record.data.names
    second = preferred(table.columns, by.setting, exclude=by.score) if by.is_probability else None
    order = [*(["label_probability"] if criteria.by_label else []), *_ORDER, "row"]
    rows, matched, count, labelled, classes = pd.DataFrame(), 0, 0, False, set[int]()
    for shard in shards:
        frame = _rows(shard, by, judge, second, criteria.limit)
        count += len(frame)
        labelled |= bool(frame["correct"].notna().any())
        classes |= {int(index) for index in frame[class_kind].dropna()}
        mask = np.ones(len(frame), bool)
        if criteria.of_class is not None:
            mask &= [key == key and _is_class(int(key), criteria.of_class, names) for key in frame[class_kind]]
        if criteria.state is not None:
            failed = criteria.state == FAILED
            mask &= (frame["value"].isna() if failed else frame["state"] == criteria.state).to_numpy(bool)
        if criteria.correct is not None:
            mask &= frame["correct"].eq(criteria.correct == "right").to_numpy(bool)
        chosen = frame.loc[mask]
        matched += len(chosen)
        rows = pd.concat([rows, chosen]) if len(rows) else chosen
        rows = rows.sort_values(by=order, na_position="last").head(count_shown)
    if criteria.correct is not None and not labelled:
        raise DataError("no_labels", "no point of the run has a label, so none is known to be right or wrong")
    query = criteria.of_class
    if query is not None and not any(_is_class(index, query, names) for index in classes):
        present = listed([class_name(table, index) for index in sorted(classes)]) or "none"
        raise DataError("no_such_point", f"no point of the run is in class {str(query)!r:.60}; classes: {present}")
    hidden = [] if criteria.by_label and bool(rows["label_probability"].notna().any()) else ["label_probability"]
    return rows.drop(columns=[*_ORDER, *hidden]).reset_index(drop=True), (matched, count)


def _rows(table: Table, by: Column, judge: Column, second: Column | None, limit: float | None) -> pd.DataFrame:
    """All points of a table as `point_list` has them, with what orders them; the columns may be those of another."""
    by, judge = table[by.label], table[judge.label]
    frame = table.points.select([*_SHOWN]).to_pandas().set_index("point", drop=False)
    frame[["value", "low", "high"]] = by.rows[["value", "low", "high"]]
    if by.is_probability:
        frame[["value", "low", "high"]] = 1.0 - by.rows[["value", "high", "low"]].to_numpy()
    frame["state"] = judge.states(limit or judge.limit or LIMIT) if judge.is_probability else None
    frame["status"] = by.status
    return frame.assign(danger=safety(by), second=0.0 if second is None else -table[second.label].value)


def _is_class(key: int, query: str | int, names: Sequence[str]) -> bool:
    """Return whether class `key` has the requested name or number."""
    name = str(query) if query in names else str(query).removeprefix("class ")
    return names.index(name) == key if name in names else str(key) == name


def format_point_list(
    frame: pd.DataFrame,
    table: Table,
    by: Column,
    top: int,
    judge: Column | None = None,
    counts: tuple[int, int] | None = None,
) -> str:
    """Return the first points of a `point_list` as plain text for a terminal.

    Where `frame` is but the beginning of a list, `counts` says how many points that has, and how many the run.
    """
    names, by_label = table.record.data.names, "label_probability" in frame

    def class_text(key: float, words: object) -> str:
        if key != key:
            return words if isinstance(words, str) and words else "-"
        return names[int(key)] if 0 <= key < len(names) else str(int(key))

    rows = [
        [
            str(row["point"]) if pd.isna(row["name"]) else f"{row['point']} {clipped(row['name'])}",
            class_text(row["label"], row["target"]),
            *([number(row["label_probability"])] if by_label else []),
            class_text(row["predicted"], row["decided"]),
            number(row["value"]),
            span(row["low"], row["high"]),
            row["state"] or "",
            row["status"],
        ]
        for row in frame.head(top).to_dict("records")
    ]
    title = "p_robust" if by.is_probability else by.quantity.replace("_", " ")
    header = ["point", "label", *["probability"] * by_label, "predicted", title, "interval", "state", "status"]
    matched, count = counts or (len(frame), len(by))
    chosen = chosen_text(count, table.record.data)
    states = "" if judge is None or judge is by else f", states by {judge.shown}"
    which = f"{matched:,} of {count:,} points{chosen and f' ({chosen})'}"
    order = "with the least probable label" if by_label else f"the least safe by {by.shown}"
    more = [f"  and {matched - top:,} more; --top shows them"] if matched > top else []
    return "\n".join([f"{which}, {order} first{states}", *aligned([header, *rows]), *more])
