"""A table in a notebook, and in a few lines of a terminal."""

from __future__ import annotations

from pathlib import PurePath

from markupsafe import Markup

from brittle.analysis.decisions import column_if_any, unjudged_text
from brittle.analysis.overview import FROM_SAFE, LIMIT, Overview, overview
from brittle.analysis.overview_text import how_brittle, how_sure, where
from brittle.display.markup import block, grid, paragraph, text, unreadable
from brittle.report.wording import plural, show
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED
from brittle.store.record import DataRecord, ModelRecord
from brittle.store.table import Table
from brittle.text import by_number

SHOWN = 3
"""Columns that a terminal names."""

SHOWN_IN_NOTEBOOK = 12
"""Columns that a notebook names."""

LONGEST_NAME = 40
"""Characters of a name."""

LONGEST_LABEL = 80
"""Characters of the label of a column in a notebook."""


def table_text(table: Table) -> str:
    """`table` in at most three lines: what was scored, how many predictions hold, the first columns.

    A table whose parts do not fit together is said to be one, and nothing is raised.
    """
    try:
        return "\n".join([_title(table), *(f"  {line}" for line in (_states(table), _columns(table)) if line)])
    except Exception as error:  # noqa: BLE001 - whoever looks for what is wrong with a table prints it
        return unreadable("Table", error)


def table_html(table: Table) -> str:
    """`table` as inert HTML: what was scored, the sentences and the groups of its overview, and its columns.

    A table whose parts do not fit together is said to be one, and nothing is raised.
    """
    try:
        return str(block(_parts(table)))
    except Exception as error:  # noqa: BLE001 - as in a terminal
        return str(paragraph(text(unreadable("Table", error))))


def _parts(table: Table) -> list[Markup]:
    found = overview(table)
    sentences = [one for one in (how_brittle(found), where(found), how_sure(found), *found.margins) if one]
    return [
        paragraph(Markup("<b>{}</b>").format(text(_title(table)))),
        *(paragraph(text(one)) for one in sentences),
        *_groups(found),
        *_numbers(table),
        paragraph(Markup("<code>brittle.show(table)</code> opens the report.")),
    ]


def _title(table: Table) -> str:
    count = plural(len(table.points), "point")
    state = "" if table.record.finished else "; the run had not finished"
    about = f"{_model(table.record.model)} on {_data(table.record.data)}{state}"
    return f"Table of {count} and {plural(len(table.record.scores), 'column')}: {about}"


def _model(model: ModelRecord) -> str:
    """The end of what the model was opened by."""
    return show(model.spec.rpartition("/")[2] or model.spec or "a model", LONGEST_NAME)


def _data(data: DataRecord) -> str:
    """The name of the data."""
    if not data.path:
        return "data in memory"
    split = f" ({show(data.split, LONGEST_NAME)})" if data.split else ""
    return f"{show(PurePath(data.path).name or data.path, LONGEST_NAME)}{split}"


def _states(table: Table) -> str:
    """How many points hold, at the limit of the overview; empty for an empty table."""
    column = column_if_any(table)
    if column is None:
        return "none has a flip probability, so it is not known how many hold" if len(table.points) else ""
    if not column.judges:
        return show(unjudged_text(column))
    limit = column.limit or LIMIT
    states = column.states(limit).tolist()
    held, broken, undecided = (states.count(state) for state in (HOLDS, BREAKS, UNDECIDED))
    told = f"{held:,} {by_number(held, 'holds', 'hold')}, {broken:,} {by_number(broken, 'breaks', 'break')}"
    lost = f", {states.count(None):,} without a number" if None in states else ""
    said = f"{told}, {undecided:,} undecided{lost}: kept with probability {limit:g} or more"
    return f"{said}, by {show(column.shown, LONGEST_NAME)}"


def _columns(table: Table) -> str:
    """The first columns, and how many more there are."""
    labels = [show(column.shown, LONGEST_NAME) for column in table.columns]
    more = f" and {len(labels) - SHOWN:,} more" if len(labels) > SHOWN else ""
    return f"columns: {', '.join(labels[:SHOWN])}{more}" if labels else ""


def _groups(found: Overview) -> list[Markup]:
    """How many predictions of each kind hold, are undecided and break; nothing where no point has a number."""
    kinds = [kind for kind in found.groups.index if sum(found.groups.loc[kind].tolist())]
    rows = [[text(kind), *(text(f"{found.count(state, kind):,}") for state in FROM_SAFE)] for kind in kinds]
    return [grid(["predictions", *FROM_SAFE], rows)] if rows else []


def _numbers(table: Table) -> list[Markup]:
    """The columns, and how many points each has a number for."""
    columns = table.columns[:SHOWN_IN_NOTEBOOK]
    rows = [[text(one.shown, LONGEST_LABEL), text(f"{one.value.notna().sum():,} of {len(one):,}")] for one in columns]
    left = len(table.columns) - len(columns)
    more = [paragraph(text(f"and {plural(left, 'column')} more"))] if left else []
    return [grid(["column", "points with a number"], rows), *more] if rows else []
