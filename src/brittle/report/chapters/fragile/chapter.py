"""The most fragile predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from brittle.analysis.extremes import ranked
from brittle.estimate import Evidence
from brittle.report import wording
from brittle.report.chapter import Chapter, Text, files_beside
from brittle.report.contents import Contents
from brittle.report.parts import Grid
from brittle.report.wording import plural, short, show
from brittle.store.columns import Row

MOST_FRAGILE = 20
"""Rows in the table."""

HEAD = ("Row", "Name", "Id", "Label", "Predicted", "p_robust", "Flip probability", "Interval", "Evidence", "Status")

FILES = files_beside(__name__)


@dataclass(frozen=True)
class Fragile:
    """The most fragile points, and how they are ordered."""

    grid: Grid
    note: str


class FragileChapter(Chapter[Fragile]):
    """The most fragile predictions."""

    name: ClassVar[str] = "fragile"
    title: ClassVar[str] = "The most fragile predictions"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    begins_part: ClassVar[bool] = False

    def summarize(self, contents: Contents) -> Fragile | None:
        """The first points by robustness; None where the page does not speak of robustness under noise."""
        if not contents.tells_robustness:
            return None
        order = ranked(contents, contents.chosen)
        rows = tuple(_row(contents, row) for row in order.head(MOST_FRAGILE).to_dict("records"))
        grid = Grid(HEAD, (True, False, False, False, False, True, True, True, False, False), rows)
        if contents.chosen is None or order.empty:
            return Fragile(grid, "No point has a robustness.")
        ties = contents.ties_text(contents.chosen)
        note = f"{len(rows)} of {plural(len(order), 'point')}, by {show(contents.chosen.label)}. {ties}"
        return Fragile(grid, note.strip())


def _row(contents: Contents, row: Row) -> tuple[str, ...]:
    return (
        f"{row['row']:,}",
        show(row["name"], 48),
        show(row["point"], 16),
        contents.class_text(row["label"]),
        contents.class_text(row["predicted"]),
        wording.p_robust(row["flip_probability"], row["high"] if _is_extrapolated(row) else None),
        _flip_text(contents, row),
        wording.flip_interval(row["low"], row["high"]),
        show(row["evidence"]),
        show(row["status"]),
    )


def _flip_text(contents: Contents, row: Row) -> str:
    """A flip probability; where a model alone says it, the bound that it gives."""
    flip = row["flip_probability"]
    if _is_extrapolated(row) and contents.chosen is not None:
        return wording.extrapolated(flip, row["high"], contents.chosen.model)
    return short(flip, 3)


def _is_extrapolated(row: Row) -> bool:
    return row["evidence"] == Evidence.EXTRAPOLATED.slug
