"""Everything that a run says of one point."""

import pandas as pd
import pyarrow.compute as pc

from brittle.analysis.class_votes import votes_texts
from brittle.analysis.columns import answer_text, key_of, safety
from brittle.analysis.decisions import unjudged_text
from brittle.analysis.features import changed_features, features
from brittle.errors import DataError, listed
from brittle.estimate import LIMIT
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Row
from brittle.store.representative import largest_budgets, representative_column
from brittle.store.table import Table
from brittle.text import aligned, clipped, number, span

FEATURES, CHANGES = 20, 10  # numbers of features of a point, and of their changes, that a terminal shows
MOST_NAME = 60  # characters of the name of a feature that it shows
VERDICTS = {  # sentences about a point at a limit
    HOLDS: "It holds: kept with probability {} or more",
    UNDECIDED: "It is undecided whether it is kept with probability {} or more",
    BREAKS: "It breaks: kept with probability below {}",
}

_FIELDS = ("score", "quantity", "value", "low", "high", "rank", "last", "of", "evidence", "status", "detail", "passes")


def find_point(table: Table, query: str | int) -> str:
    """Return the id of the point that has this id, this row number or this name, in that order.

    Raises:
        DataError: no point has, or several have that name.
    """
    ids, text = table.points["point"].to_pylist(), str(query)
    if text in ids:
        return text
    if text.isdecimal() and int(query) in (rows := table.points["row"].to_pylist()):
        return ids[rows.index(int(query))]
    alike = [point for point, name in zip(ids, table.points["name"].to_pylist(), strict=True) if name == text]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise DataError("no_such_point", f"{len(alike)} points have the name {text!r:.60}; ask by id: {listed(alike)}")
    raise DataError("no_such_point", f"no point of the run has the id, row or name {text!r:.60}; ids: {listed(ids)}")


def point_card(table: Table, point: str) -> pd.DataFrame:
    """Every score of one point.

    Args:
        table: a run.
        point: its id (`find_point` gives it).

    Returns:
        One row per score, in the order of the record: `score` (its label), `quantity` (`p_robust` of a flip
        probability), `value` with its interval `low`, `high`; `rank`, its place in the order of that score, the least
        safe first, and the `last` place that it shares with equal points, `of` so many points with a number (NaN
        where a score has no safer direction); `evidence`, `status`, `detail`, `passes`.
    """
    rows = []
    for column in table.columns:
        (row,) = column.rows.loc[[point]].to_dict("records")
        row |= {name: "" if pd.isna(row[name]) else row[name] for name in ("evidence", "status", "detail")}
        if column.is_probability:
            row |= {"value": 1 - row["value"], "low": 1 - row["high"], "high": 1 - row["low"]}
        order = safety(column)
        place = {}
        if order is not None:
            first_rank, last_rank = (order.rank(method=end)[point] for end in ("min", "max"))
            place = {"rank": first_rank, "last": last_rank, "of": order.count()}
        quantity = "p_robust" if column.is_probability else column.quantity
        rows.append(row | {"score": column.label, "quantity": quantity} | place)
    return pd.DataFrame(rows, columns=_FIELDS)


def format_point_card(table: Table, point: str) -> str:
    """Return the result of `point_card` as plain text for a terminal, with what the point is.

    Of each estimator of the flip probability, that with the most draws.
    """
    largest = {column.label for column in largest_budgets(table.columns)}
    names = {score.label: score.shown for score in table.columns if score.label in largest or not score.is_probability}
    shown = [row for row in point_card(table, point).to_dict("records") if row["score"] in names]
    (row,) = table.points.filter(pc.field("point") == point).drop_columns(["image"]).to_pylist()
    lines = [_headline(table, row), *_verdict(table, point), *filter(None, [votes_texts(table).get(point)]), ""]
    header = ["score", "value", "interval", "rank (1 is the least safe)", "evidence", "status"]
    lines += aligned([header, *([names[cell_row["score"]], *_cells(cell_row)] for cell_row in shown)])
    notes = {row["detail"]: names[row["score"]] for row in shown if row["detail"]}
    lines += ["", *(f"  {score}: {note}" for note, score in notes.items())] if notes else []
    has_input = row["input"] is not None
    if has_input:
        lines += ["", *_first(features(table, point), FEATURES, ["feature", "value"], "features"), ""]
    met = table.counterexamples.select(["point", "score", "parameters", "predicted", "decided"])
    columns = {key_of(column): column for column in table.columns}
    for counterexample in met.filter(pc.field("point") == point).to_pylist():
        prediction = answer_text(table, counterexample["predicted"], counterexample["decided"])
        lines.append(f"  {counterexample['score']}: the nearest other input that was found is predicted {prediction}")
        if has_input and (column := columns.get((counterexample["score"], counterexample["parameters"]))) is not None:
            changed = changed_features(table, point, column).query("change != 0").rename(columns={"other": "there"})
            lines += _first(changed.assign(feature="  " + changed["feature"]), CHANGES, [*changed], "that change")
    return "\n".join(lines)


def _headline(table: Table, row: Row) -> str:
    """Name a point with its prediction, label and problem."""
    name = f" ({clipped(row['name'])})" if row["name"] is not None else ""
    answer = answer_text(table, row["predicted"], row["decided"])
    target = answer_text(table, row["label"], row["target"])
    predicted = "no prediction" if answer is None else f"predicted {answer}"
    label = "" if target is None else f", labelled {target}"
    wrong = {True: ": right", False: ": wrong", None: ""}[row["correct"]]
    detail = f"; {row['detail']}" if row["detail"] else ""
    return f"Point {row['point']}{name}, row {row['row']}: {predicted}{label}{wrong}{detail}"


def _verdict(table: Table, point: str) -> list[str]:
    """Say whether the prediction holds."""
    column = representative_column(table.columns)
    lines = []
    if column is not None and not column.is_decisive:
        lines.append(f"{unjudged_text(column)}.")
    elif column is not None:
        limit = column.limit or LIMIT
        sentence = VERDICTS.get(column.states(limit).to_dict()[point], "It has no number")
        lines.append(f"{sentence.format(f'{limit:g}')}, by {column.shown}.")
    return lines


def _cells(row: Row) -> list[str]:
    rank = "-"
    if not pd.isna(row["rank"]):
        shared = f" to {int(row['last']):,}" if row["last"] > row["rank"] else ""
        rank = f"{int(row['rank']):,}{shared} of {int(row['of']):,}"
    quantity = row["quantity"] if row["quantity"] == "p_robust" else row["quantity"].replace("_", " ")
    return [f"{number(row['value'])} ({quantity})", span(row["low"], row["high"]), rank, row["evidence"], row["status"]]


def _first(frame: pd.DataFrame, count: int, header: list[str], kind: str) -> list[str]:
    """Return the first rows of features and numbers of them, and how many more there are."""
    rows = [[row[0][: MOST_NAME + 2], *(f"{value:.3g}" for value in row[1:])] for row in frame.head(count).to_numpy()]
    more = [f"  and {len(frame) - count:,} more {kind}"] if len(frame) > count else []
    return [*(aligned([header, *rows]) if rows else []), *more]
