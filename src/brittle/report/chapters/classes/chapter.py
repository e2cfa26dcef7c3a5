"""Robustness by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from brittle.analysis.class_bias import ClassBias
from brittle.errors import listed
from brittle.report.chapter import Brief, Chapter, Text, files_beside
from brittle.report.chapters.classes.charts import classes_chart
from brittle.report.contents import Contents, ends
from brittle.report.figure import Figure
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
        frame: means under each noise setting: `setting`, `name`, `order`, `mean`, `low`, `high`, `overall`.
        grid: the same as a table, at the setting that speaks for the run.
        note: what the figure shows, and a test of the differences.
        ends: the least and the most robust class; empty where the classes do not surely differ.
    """

    frame: pd.DataFrame
    grid: Grid
    note: str
    ends: tuple[Number, ...]


class ClassesChapter(Chapter[Classes]):
    """Robustness by class."""

    name: ClassVar[str] = "classes"
    title: ClassVar[str] = "Robustness by class"
    template: ClassVar[Text] = FILES / "chapter.html.jinja"
    begins_part: ClassVar[bool] = False

    def summarize(self, contents: Contents) -> Classes | None:
        """Means by class; None where the page does not speak of robustness under noise."""
        if not contents.tells_robustness:
            return None
        bias = contents.bias
        return Classes(_frame(contents, bias), _grid(contents, bias), _note(bias), _ends(contents, bias))

    def figures(self, result: Classes) -> Mapping[str, Figure]:
        """The means."""
        return {"classes": Figure(classes_chart, result.frame)}

    def brief(self, result: Classes) -> Brief:
        """The least and the most robust class, where there is one."""
        return Brief(result.ends)


def _ends(contents: Contents, bias: ClassBias | None) -> tuple[Number, ...]:
    """The least and the most robust class, once the classes surely differ."""
    if bias is None or not bias.differ:
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
    )


def _rivals(contents: Contents, number: int, rivals: Sequence[int]) -> str:
    """Which other classes may stand in the place of class `number`."""
    others = [contents.class_text(other) for other in rivals if other != number]
    return f"Not told apart from {listed(others, MAX_RIVALS)}." if others else "Told apart from every other class."


def _frame(contents: Contents, bias: ClassBias | None) -> pd.DataFrame:
    """The classes under each setting, in the order of `bias`."""
    if bias is None:
        return pd.DataFrame(columns=["setting", "name", "order", "mean", "low", "high", "overall"])
    kept = ends(bias.classes["class"].tolist(), MAX_CLASSES)
    names = contents.class_labels(kept)
    rows = [
        {name: row[name] for name in ("mean", "low", "high")}
        | {"setting": show(str(setting)), "name": names[row["class"]], "order": kept.index(row["class"])}
        | {"overall": one.column.p_robust.mean()}
        for setting, one in contents.biases.items()
        for row in one.classes.to_dict("records")
        if row["class"] in names
    ]
    return pd.DataFrame(rows)


def _grid(contents: Contents, bias: ClassBias | None) -> Grid:
    records = bias.classes.to_dict("records") if bias is not None else []
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


def _note(bias: ClassBias | None) -> str:
    if bias is None:
        return "No point has both a robustness and a class."
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
            _test_text(bias),
            "Each interval is for its class alone and for the mean over all points that might have been drawn from it.",
            f"{plural(left, 'class')} in the middle not drawn." if left > 0 else "",
        )
        if part
    )


def _test_text(bias: ClassBias) -> str:
    value = "below 1e-12" if bias.p_value < 1e-12 else short(bias.p_value)
    verdict = (
        "the classes differ"
        if bias.differ
        else "chance alone may explain the differences, so that no class is named the least robust"
    )
    return (
        f"If the means of all {len(bias.classes)} classes were equal, two of them as far apart would arise with a "
        f"probability of at most {value} (every pair compared, corrected for their number): {verdict}."
    )
