"""Which predictions hold with the probability that was asked for, by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from brittle.analysis.class_bias import class_of
from brittle.analysis.decisions import decisions, drawn
from brittle.report.chapter import Chapter, Grid
from brittle.report.charts import NARROW, STATES, few_ticks, heading, names_axis, state_colour, width_beside
from brittle.report.contents import Contents
from brittle.report.figure import panels
from brittle.report.wording import percent, show
from brittle.store.columns import HOLDS, Column

MAX_CLASSES = 30
"""Classes drawn; of more, those of which the smallest and the largest share holds."""


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Points that hold by class; None where the run was not asked for any limit.

    The shares of each class are drawn where several questions were asked; the first screen has those of one.
    """
    asked = [column for column in contents.columns if column.is_probability and column.limit is not None]
    if not asked:
        return None
    questions = _questions(asked)
    rows = decisions(contents).to_dict("records")
    counts = [{state: int(row[state]) for state in STATES} for row in rows]
    parts = [_frame(contents, column, question) for column, question in zip(asked, questions, strict=True)]
    frame = pd.concat(parts, ignore_index=True)
    pairs = zip(questions, counts, strict=True)
    spoken = [f"{question}: {each[HOLDS]:,} of {sum(each.values()):,} hold." for question, each in pairs]
    return {
        "precise": any("precision" in one.parameters for one in asked),
        "figure": panels(decisions_chart, frame if len(asked) > 1 else frame.iloc[:0], " ".join(spoken)),
        "grid": _grid(asked, questions, counts),
        "by": "true class" if class_of(contents)[0] == "label" else "predicted class, as the data carry no labels",
        "wrong": percent(1 - contents.confidence),
    }


CHAPTER = Chapter("decisions", "Does each prediction hold?", summarize)


def decisions_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """The share of each class that holds, is undecided and breaks, for one question."""
    names = frame.sort_values("order")["name"].drop_duplicates().tolist()
    bars = alt.Chart(frame).mark_bar().encode(
        x=alt.X("points:Q", stack="normalize", title="share of the points", axis=few_ticks(format="%")),
        y=alt.Y("name:N", scale=alt.Scale(domain=names), title=None, axis=names_axis()),
        color=state_colour(),
        order=alt.Order("place:Q"),
    )  # fmt: skip
    return bars.properties(width=width_beside(width, names), height=alt.Step(20), title=heading(frame))


def _questions(asked: Sequence[Column]) -> list[str]:
    """The question of each column; its label, where another was asked the same in other ways."""
    short = [f"{column.setting}, limit {column.limit:g}" for column in asked]
    pairs = zip(asked, short, strict=True)
    return [show(text if short.count(text) == 1 else column.label) for column, text in pairs]


def _frame(contents: Contents, column: Column, question: str) -> pd.DataFrame:
    """The points of one column by class and state; the class of which the smallest share holds comes first."""
    states = pd.DataFrame({"class": class_of(contents)[1], "state": column.states(column.limit or 0.5)}).dropna()
    table = pd.crosstab(states["class"], states["state"]).reindex(columns=list(STATES), fill_value=0)
    shares = {int(number): row[HOLDS] / sum(row.values()) for number, row in table.to_dict("index").items()}
    shown = sorted(shares, key=lambda number: (shares[number], number))
    if len(shown) > MAX_CLASSES:
        shown = [*shown[: MAX_CLASSES // 2], *shown[-MAX_CLASSES // 2 :]]
    names = contents.class_labels(shown)
    rows = [
        (question, names[number], order, state, place, int(table.loc[number, state]))
        for order, number in enumerate(shown)
        for place, state in enumerate(STATES)
    ]
    return pd.DataFrame(rows, columns=["setting", "name", "order", "state", "place", "points"])


def _grid(asked: Sequence[Column], questions: Sequence[str], counts: Sequence[Mapping[str, int]]) -> Grid:
    rows = [
        (question, *(f"{each[state]:,}" for state in STATES), f"{drawn(column).mean():,.0f}",
         f"{column.parameters['draws']:,}")
        for column, question, each in zip(asked, questions, counts, strict=True)
    ]  # fmt: skip
    return Grid(("Noise and limit", *(state.capitalize() for state in STATES), "Draws a point", "At most"), rows)
