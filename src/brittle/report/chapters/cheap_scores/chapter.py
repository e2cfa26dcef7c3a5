"""Whether softmax and the margins, which know no noise, can stand in for robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from brittle.analysis.columns import LAPLACIAN
from brittle.analysis.worst_case import rank_correlation
from brittle.estimate import INPUT_MARGIN
from brittle.report.chapter import Chapter, Text, files_beside
from brittle.report.chapters.cheap_scores.charts import cheap_scores_chart
from brittle.report.contents import Contents
from brittle.report.figure import Figure
from brittle.report.parts import Grid
from brittle.report.wording import MISSING, fixed, interval, show
from brittle.store.columns import Column

MAX_DOTS = 1200
"""Points drawn in one scatter plot."""

FILES = files_beside(__name__)


@dataclass(frozen=True, eq=False)
class CheapScores:
    """Scores that know no noise against robustness.

    Attributes:
        frame: of each point: `title`, `place`, `order`, `value`, `p_robust`.
        grid: rank correlations.
        note: what the figure shows.
    """

    frame: pd.DataFrame
    grid: Grid
    note: str

    @property
    def spoken(self) -> str:
        """The figure in words."""
        return " ".join(f"{row[0]}: tau {row[1]}." for row in self.grid.rows)


class CheapScoresChapter(Chapter[CheapScores]):
    """Whether a score that knows no noise can stand in for robustness."""

    name: ClassVar[str] = "margins"
    title: ClassVar[str] = "Can a cheap score stand in?"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    in_methods: ClassVar[bool] = True

    def summarize(self, contents: Contents) -> CheapScores | None:
        """Each score against robustness; None where the run lacks either."""
        scores = _scores(contents)
        if contents.chosen is None or not scores:
            return None
        grid = _grid(contents, scores)
        frames = [
            _pairs(contents.chosen, column, contents.place(column.score), order) for order, column in enumerate(scores)
        ]
        return CheapScores(pd.concat(frames, ignore_index=True), grid, _note(contents.chosen, scores))

    def figures(self, result: CheapScores) -> Mapping[str, Figure]:
        """Robustness against each score."""
        return {"margins": Figure(cheap_scores_chart, result.frame, by="title")}


def _scores(contents: Contents) -> tuple[Column, ...]:
    of_label = contents.chosen is not None and contents.chosen.setting.of_label
    return tuple(
        column
        for column in contents.columns
        if column.setting.sigma is None and column.score not in (INPUT_MARGIN, LAPLACIAN)
        if column is not contents.chosen and column.value.notna().any()
        if column.setting.of_label == of_label
    )


def _note(chosen: Column, scores: Sequence[Column]) -> str:
    lower = [show(column.variant, 40) for column in scores if column.safer == "lower" and not column.is_probability]
    return (
        f"p_robust is that of {show(chosen.shown)}. Of more than {MAX_DOTS:,} points a regular selection is "
        "drawn; tau is over all, its interval approximate."
        + (f" Smaller where safer, and in tau taken with the other sign: {', '.join(lower)}." if lower else "")
    )


def _pairs(chosen: Column, column: Column, place: int, order: int) -> pd.DataFrame:
    value = column.p_robust if column.is_probability else column.value
    pairs = pd.DataFrame({"value": value, "p_robust": chosen.p_robust})
    pairs = pairs.replace([float("inf"), float("-inf")], float("nan")).dropna().reset_index(drop=True)
    step = max(-(-len(pairs) // MAX_DOTS), 1)
    return pairs.iloc[::step].assign(title=show(column.variant, 40), place=place, order=order)


def _grid(contents: Contents, scores: Sequence[Column]) -> Grid:
    frame = rank_correlation(contents, scores, contents.chosen)
    cells = tuple(
        (
            show(row["label"], 60),
            fixed(row["tau"]),
            MISSING if pd.isna(row["low"]) else interval(row["low"], row["high"]),
            f"{row['points']:,}",
        )
        for row in frame.to_dict("records")
    )
    colours = tuple(contents.colour(score) for score in frame["score"])
    header = ("Score", "Kendall's tau with p_robust", "Interval", "Points")
    return Grid(header, (False, True, True, True), cells, colours)
