"""Robustness by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from brittle.analysis.class_bias import ClassBias
from brittle.analysis.overview import NAMED
from brittle.errors import listed
from brittle.report.chapter import Brief, Chapter, Text, files_beside
from brittle.report.chapters.classes.charts import classes_chart
from brittle.report.contents import Contents, extreme_classes
from brittle.report.figure import Figure, panels
from brittle.report.parts import Grid, Number
from brittle.report.wording import fixed, interval, plural, range_text, short, show

MAX_CLASSES = 30
"""Classes drawn; of more, the least and the most robust."""

MAX_RIVALS = 3
"""Classes named that are not told apart from the least or the most robust one."""

FILES = files_beside(__name__)


@dataclass(frozen=True, eq=False)
class Classes:
    """Robustness by class.

    Attributes:
        frame: means under each noise setting: `setting`, `name`, `order`, `mean`, `low`, `high`, `overall`;
            a row without numbers stands for the classes left out.
        grid: the same as a table, at the setting that speaks for the run.
        note: what the figure shows.
        test: whether the classes differ; empty for a single class.
        ends: the least and the most robust class; empty where the classes do not surely differ.
    """

    frame: pd.DataFrame
    grid: Grid
    note: str
    test: str
    ends: tuple[Number, ...]

    @property
    def spoken(self) -> str:
        """The figure in words: the first and the last class."""
        rows = self.grid.rows
        told = [f"{row[0]} {row[2]} ({row[3]})" for row in (rows[0], rows[-1])]
        return f"Mean p_robust by class, from {told[0]} to {told[1]}."


class ClassesChapter(Chapter[Classes]):
    """Robustness by class."""

    name: ClassVar[str] = "classes"
    title: ClassVar[str] = "Robustness by class"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    methods: ClassVar[Text] = FILES / "methods.html.jinja"
    begins_part: ClassVar[bool] = False

    def summarize(self, contents: Contents) -> Classes | None:
        """Means by class; None where no point has both a robustness and a class."""
        bias = contents.bias
        if bias is None:
            return None
        return Classes(
            _frame(contents, bias), _grid(contents, bias), _note(bias), _test_text(bias), _ends(contents, bias)
        )

    def figures(self, result: Classes) -> Mapping[str, Figure]:
        """The means."""
        return {"classes": panels(classes_chart, result.frame)}

    def brief(self, result: Classes) -> Brief:
        """The least and the most robust class, where there is one."""
        return Brief(result.ends)


def _ends(contents: Contents, bias: ClassBias) -> tuple[Number, ...]:
    """The least and the most robust class, once the classes surely differ; a class of few points is none of them."""
    if not bias.differ:
        return ()
    found = (
        ("Least robust class", bias.classes.iloc[0], bias.least),
        ("Most robust class", bias.classes.iloc[-1], bias.most),
    )
    return tuple(
        Number(
            f"{title}, {show(str(bias.column.setting))}",
            contents.class_text(row["class"]),
            f"Mean p_robust {fixed(row['mean'])} ({interval(row['low'], row['high'])}) over "
            f"{plural(int(row['points']), 'point')}. {_rivals(contents, row['class'], rivals)}",
        )
        for title, row, rivals in found
        if row["points"] >= NAMED
    )


def _rivals(contents: Contents, number: int, rivals: Sequence[int]) -> str:
    """Which other classes may stand in the place of class `number`."""
    others = [contents.class_text(other) for other in rivals if other != number]
    return f"Not told apart from {listed(others, MAX_RIVALS)}." if others else "Told apart from every other class."


def _frame(contents: Contents, bias: ClassBias) -> pd.DataFrame:
    """The classes under each setting, in the order of `bias`, with a row that marks a gap."""
    kept = extreme_classes(bias, MAX_CLASSES)
    names = contents.class_labels(kept)
    left = len(bias.classes) - len(kept)
    gap = {"name": f"⋮  {left:,} not drawn", "order": len(kept) // 2 - 0.5}
    rows = [
        {name: row[name] for name in ("mean", "low", "high")}
        | {"setting": show(str(setting)), "name": names[row["class"]], "order": kept.index(row["class"])}
        | {"overall": one.column.p_robust.mean()}
        for setting, one in contents.biases.items()
        for row in one.classes.to_dict("records")
        if row["class"] in names
    ]
    rows += [gap | {"setting": setting} for setting in dict.fromkeys(row["setting"] for row in rows) if left > 0]
    return pd.DataFrame(rows)


def _grid(contents: Contents, bias: ClassBias) -> Grid:
    records = bias.classes.to_dict("records")
    rows = tuple(
        (
            contents.class_text(row["class"]),
            f"{row['points']:,}",
            fixed(row["mean"]),
            interval(row["low"], row["high"]),
            fixed(row["median"]),
        )
        for row in records
    )
    return Grid(("Class", "Points", "Mean p_robust", "Interval", "Median"), (False, True, True, True, True), rows)


def _note(bias: ClassBias) -> str:
    by = "true class" if bias.by == "label" else "predicted class, as the data carry no labels"
    if len(bias.classes) < 2:
        return f"Points by {by}. All belong to one class, so there is nothing to compare."
    sizes = bias.classes["points"]
    left = len(bias.classes) - MAX_CLASSES
    return " ".join(
        part
        for part in (
            f"Points by {by}, {range_text([f'{sizes.min():,}', f'{sizes.max():,}'])} to a class; order and test at "
            f"{show(str(bias.column.setting))}, where the class means differ by up to {fixed(bias.spread)}.",
            f"{plural(left, 'class')} in the middle not drawn." if left > 0 else "",
        )
        if part
    )


def _test_text(bias: ClassBias) -> str:
    if len(bias.classes) < 2:
        return ""
    value = "below 1e-12" if bias.p_value < 1e-12 else short(bias.p_value)
    verdict = (
        "the classes differ"
        if bias.differ
        else "chance alone may explain the differences, so that no class is named the least robust"
    )
    return (
        f"If the means of all {len(bias.classes)} classes were equal, two of them as far apart would arise with a "
        f"probability of at most {value} (every pair compared, corrected for their number): {verdict}. "
        "Each interval is for its class alone and for the mean over all points that might have been drawn from it."
    )
