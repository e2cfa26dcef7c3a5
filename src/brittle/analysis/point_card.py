"""Everything that a run says of one point."""

from __future__ import annotations

import math

import pandas as pd

from brittle.analysis.class_bias import answer_text
from brittle.analysis.columns import largest_budgets, safety
from brittle.analysis.decisions import column_if_any, numbers_beside, unjudged_text
from brittle.analysis.features import Attacked, changed_features, features
from brittle.analysis.overview import LIMIT
from brittle.analysis.text import aligned, number
from brittle.errors import DataError, listed
from brittle.estimate import INPUT_MARGIN, parameters_json
from brittle.store.columns import BREAKS, BULKY, HOLDS, UNDECIDED, Row, Scored

FEATURES, CHANGES = 20, 10
"""How many features of a point, and of these how many changes, a terminal shows."""

MOST_NAME = 60
"""Characters of the name of a feature that it shows."""

VERDICTS = {
    HOLDS: "It holds: kept with probability {} or more",
    UNDECIDED: "It is undecided whether it is kept with probability {} or more",
    BREAKS: "It breaks: kept with probability below {}",
}
"""What is said of a point at a limit, by its state."""

_FIELDS = ("score", "quantity", "value", "low", "high", "rank", "of", "evidence", "status", "detail", "passes")


def find_point(table: Scored, asked: str | int) -> str:
    """The id of the point that has this id, this row number or this name, in that order.

    Raises:
        DataError: no point has, or several have that name.
    """
    ids = table.points["point"].to_pylist()
    if str(asked) in ids:
        return str(asked)
    if str(asked).isdigit() and int(asked) in (rows := table.points["row"].to_pylist()):
        return ids[rows.index(int(asked))]
    named = [one for one, name in zip(ids, table.points["name"].to_pylist(), strict=True) if name == str(asked)]
    if len(named) == 1:
        return named[0]
    if named:
        raise DataError(
            "no_such_point", f"{len(named)} points have the name {str(asked)!r:.60}; ask by id: {listed(named, 5)}"
        )
    raise DataError(
        "no_such_point", f"no point of the run has the id, row or name {str(asked)!r:.60}; ids: {listed(ids, 5)}"
    )


def point_card(table: Scored, point: str) -> pd.DataFrame:
    """Every score of one point.

    Args:
        table: a run.
        point: its id (`find_point` gives it).

    Returns:
        One row per score, in the order of the record: `score` (its label), `quantity` (`p_robust` of a flip
        probability), `value` with its interval `low`, `high`; `rank`, its place in the order of that score, the least
        safe first, `of` so many points with a number (both NaN where a score has no safer direction); `evidence`,
        `status`, `detail`, `passes`.
    """
    rows = []
    for column in table.columns:
        (row,) = column.rows.loc[[point]].to_dict("records")
        ends = (1 - row["high"], 1 - row["low"]) if column.is_probability else (row["low"], row["high"])
        order = safety(column)
        own = math.nan if order is None else float(order.loc[[point]].iloc[0])
        rows.append(
            {
                "score": column.label,
                "quantity": "p_robust" if column.is_probability else column.quantity,
                "value": 1 - row["value"] if column.is_probability else row["value"],
                "low": ends[0],
                "high": ends[1],
                "rank": math.nan if order is None or math.isnan(own) else sum((order < own).tolist()) + 1,
                "of": math.nan if order is None else sum(order.notna().tolist()),
                **{name: "" if pd.isna(row[name]) else row[name] for name in ("evidence", "status", "detail")},
                "passes": row["passes"],
            }
        )
    return pd.DataFrame(rows, columns=_FIELDS)


def format_point_card(table: Attacked, point: str) -> str:
    """The result of `point_card` as plain text for a terminal, with what the point is.

    Of each estimator of the flip probability, that with the most draws.
    """
    most = {column.label for column in largest_budgets(table.columns)}
    few = {column.label for column in table.columns if column.is_probability} - most
    shown = [row for row in point_card(table, point).to_dict("records") if row["score"] not in few]
    (row,) = table.points.drop_columns(list(BULKY)).filter(_is(table, point)).to_pylist()
    lines = [_what(table, row), *_answers(table, point), ""]
    names = {column.label: column.shown for column in table.columns}
    cells = [_cells(each | {"score": names[each["score"]]}) for each in shown]
    lines += aligned([["score", "value", "interval", "rank (1 is the least safe)", "evidence", "status"], *cells])
    notes = {each["detail"]: names[each["score"]] for each in shown if each["detail"]}
    lines += ["", *(f"  {score}: {note}" for note, score in notes.items())] if notes else []
    kept = table.points.filter(_is(table, point))["input"].null_count == 0
    lines += _features(table, point) if kept else []
    met = table.counterexamples.select(["point", "score", "parameters", "predicted", "decided"]).to_pylist()
    for one in met:
        if one["point"] == point:
            there = answer_text(table, one["predicted"], one["decided"])
            found = f"the nearest other input that was found is predicted {there}"
            lines += [f"  {one['score']}: {found}", *(_changes(table, point, one) if kept else [])]
    return "\n".join(lines)


def _features(table: Scored, point: str) -> list[str]:
    """The first features of a point with their values."""
    shown = features(table, point)
    rows = [[row["feature"][:MOST_NAME], f"{row['value']:.3g}"] for row in shown.head(FEATURES).to_dict("records")]
    return ["", *aligned([["feature", "value"], *rows]), *_more(len(shown) - FEATURES, "features"), ""]


def _changes(table: Attacked, point: str, found: Row) -> list[str]:
    """The largest changes of the features of a point to an input that was found."""
    named = (found["score"], found["parameters"])
    column = next((one for one in table.columns if (one.score, parameters_json(one.parameters)) == named), None)
    if column is None:
        return []
    shown = changed_features(table, point, column).query("change != 0")
    rows = [
        [
            f"  {row['feature'][:MOST_NAME]}",
            f"{row['value']:.3g}",
            "->",
            f"{row['other']:.3g}",
            f"({row['change']:+.3g})",
        ]
        for row in shown.head(CHANGES).to_dict("records")
    ]
    return [*(aligned(rows) if rows else []), *_more(len(shown) - CHANGES, "that change")]


def _more(count: int, what: str) -> list[str]:
    return [f"  and {count:,} more {what}"] if count > 0 else []


def _answers(table: Scored, point: str) -> list[str]:
    """Whether the prediction holds, and how one would learn the distance to another one where the run has none."""
    column = column_if_any(table)
    lines = []
    if column is not None and not column.judges:
        lines.append(f"{unjudged_text(column)}.")
    elif column is not None:
        limit = column.limit or LIMIT
        said = VERDICTS.get(column.states(limit).to_dict()[point], "It has no number")
        lines.append(f"{said.format(f'{limit:g}')}, by {column.shown}.")
        if (numbers := numbers_beside(table, column)) is not column:
            row = numbers.rows.loc[point]
            ends = f"{number(1 - row['high'])} to {number(1 - row['low'])}"
            lines.append(f"Its better count: kept with probability {number(1 - row['value'])} ({ends}).")
    if not any(one.score == INPUT_MARGIN for one in table.columns):
        lines.append("The distance to another prediction was not measured; --scores input_margin does.")
    return lines


def _is(table: Scored, point: str) -> list[bool]:
    return [one == point for one in table.points["point"].to_pylist()]


def _what(table: Scored, row: Row) -> str:
    name = f" ({row['name']})" if row["name"] is not None else ""
    own, right = (
        answer_text(table, row[number], row[words]) for number, words in (("predicted", "decided"), ("label", "target"))
    )
    predicted = "no prediction" if own is None else f"predicted {own}"
    label = "" if right is None else f", labelled {right}"
    wrong = {True: ": right", False: ": wrong", None: ""}[row["correct"]]
    detail = f"; {row['detail']}" if row["detail"] else ""
    return f"Point {row['point']}{name}, row {row['row']}: {predicted}{label}{wrong}{detail}"


def _cells(row: Row) -> list[str]:
    interval = "-" if pd.isna(row["low"]) else f"{number(row['low'])} to {number(row['high'])}"
    rank = "-" if pd.isna(row["rank"]) else f"{int(row['rank']):,} of {int(row['of']):,}"
    value = number(row["value"])
    text = f"{value} ({row['quantity'].replace('_', ' ')})" if row["quantity"] != "p_robust" else f"{value} (p_robust)"
    return [row["score"], text, interval, rank, row["evidence"], row["status"]]
