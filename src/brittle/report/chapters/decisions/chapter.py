"""Which predictions hold with the probability that was asked for, by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from brittle.analysis.class_bias import class_of
from brittle.analysis.decisions import STATES, decisions, drawn
from brittle.report.chapter import Brief, Chapter, Text, files_beside
from brittle.report.chapters.decisions.charts import decisions_chart
from brittle.report.contents import Contents, ends
from brittle.report.figure import Figure, panels
from brittle.report.parts import Grid, Number
from brittle.report.wording import percent, plural, show
from brittle.store.columns import BREAKS, HOLDS, UNDECIDED, Column

MAX_CLASSES = 30
"""Classes drawn; of more, those of which the smallest and the largest share holds."""

PLACES = {HOLDS: 0, UNDECIDED: 1, BREAKS: 2}
"""The order of the parts of a bar."""

FILES = files_beside(__name__)


@dataclass(frozen=True, eq=False)
class Decisions:
    """Which predictions hold.

    Attributes:
        frame: points of each class and state: `setting`, `name`, `order`, `state`, `place`, `points`.
        grid: the same over all points, for each question.
        note: what the figure shows.
        undecided: why some points are.
        numbers: how many points hold, for each question.
    """

    frame: pd.DataFrame
    grid: Grid
    note: str
    undecided: str
    numbers: tuple[Number, ...]

    @property
    def spoken(self) -> str:
        """The figure in words."""
        return " ".join(f"{number.title}: {number.value}." for number in self.numbers)


class DecisionsChapter(Chapter[Decisions]):
    """Which predictions hold with the probability that was asked for."""

    name: ClassVar[str] = "decisions"
    title: ClassVar[str] = "Does each prediction hold?"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    begins_part: ClassVar[bool] = False

    def summarize(self, contents: Contents) -> Decisions | None:
        """Points that hold by class; None where the run was not asked for any limit."""
        asked = [column for column in contents.columns if column.is_probability and column.limit is not None]
        if not asked:
            return None
        questions = _questions(asked)
        pairs = zip(asked, questions, strict=True)
        frame = pd.concat([_frame(contents, column, question) for column, question in pairs], ignore_index=True)
        rows = _rows(contents, asked)
        numbers = tuple(_number(row, one, question) for (row, one), question in zip(rows, questions, strict=True))
        return Decisions(frame, _grid(rows, questions), _note(contents), _undecided(asked), numbers)

    def figures(self, result: Decisions) -> Mapping[str, Figure]:
        """The shares of each class, where several questions were asked; the first screen has those of one."""
        several = len(result.numbers) > 1
        return {"decisions": panels(decisions_chart, result.frame if several else result.frame.iloc[:0])}

    def brief(self, result: Decisions) -> Brief:
        """How many points hold."""
        return Brief(result.numbers)


def _questions(asked: Sequence[Column]) -> tuple[str, ...]:
    """What each column was asked; its label, where another was asked the same in other ways."""
    short = [f"{column.setting}, limit {column.limit:g}" for column in asked]
    return tuple(text if short.count(text) == 1 else column.label for column, text in zip(asked, short, strict=True))


def _rows(contents: Contents, asked: Sequence[Column]) -> list[tuple[dict[str, int], Column]]:
    """How many points of each state, for each column."""
    rows = decisions(contents).to_dict("records")
    return [({state: int(row[state]) for state in STATES}, one) for row, one in zip(rows, asked, strict=True)]


def _frame(contents: Contents, column: Column, question: str) -> pd.DataFrame:
    """The points of one column by class and state; the class of which the smallest share holds comes first."""
    states = pd.DataFrame({"class": class_of(contents)[1], "state": column.states(column.limit or 0.5)}).dropna()
    table = pd.crosstab(states["class"], states["state"]).reindex(columns=STATES, fill_value=0)
    shares = {int(number): row[HOLDS] / sum(row.values()) for number, row in table.to_dict("index").items()}
    kept = ends(sorted(shares, key=lambda number: (shares[number], number)), MAX_CLASSES)
    names = contents.class_labels(kept)
    rows = [
        {"name": names[number], "order": kept.index(number), "state": state, "place": PLACES[state]}
        | {"setting": show(question), "points": int(table.loc[number, state])}
        for number in kept
        for state in STATES
    ]
    return pd.DataFrame(rows, columns=["setting", "name", "order", "state", "place", "points"])


def _number(counts: Mapping[str, int], column: Column, question: str) -> Number:
    total = sum(counts.values())
    note = f"{plural(counts[BREAKS], 'point')} surely not, {counts[UNDECIDED]:,} undecided."
    about = question if question == column.label else str(column.setting)
    title = f"Kept with probability {column.limit:g}, {show(about)}"
    return Number(title, f"{counts[HOLDS]:,} of {total:,}", note)


def _grid(answers: Sequence[tuple[Mapping[str, int], Column]], questions: Sequence[str]) -> Grid:
    header = ("Noise and limit", "Holds", "Breaks", "Undecided", "Draws a point", "At most")
    rows = tuple(
        (
            show(question),
            *(f"{counts[state]:,}" for state in STATES),
            f"{drawn(column).mean():,.0f}",
            f"{column.parameters['draws']:,}",
        )
        for (counts, column), question in zip(answers, questions, strict=True)
    )
    return Grid(header, (False, *[True] * 5), rows)


def _undecided(asked: Sequence[Column]) -> str:
    """Why points are undecided."""
    narrow = " or an interval as narrow as was asked for" if any("precision" in one.parameters for one in asked) else ""
    return f"Undecided points had as many copies as they may have{narrow}, and their interval reaches over that limit."


def _note(contents: Contents) -> str:
    by = "true class" if class_of(contents)[0] == "label" else "predicted class, as the data carry no labels"
    wrong = percent(1 - contents.confidence)
    return f"Points by {by}. For any network, at most {wrong} of the points are called wrong in the mean."
