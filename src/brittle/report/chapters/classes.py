"""Robustness by class."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.analysis.class_bias import ClassBias
from brittle.report.chapter import Chapter, Grid
from brittle.report.charts import ACCENT, NARROW, dashed, few_ticks, interval_dots, names_axis, width_beside
from brittle.report.contents import Contents, extreme_classes
from brittle.report.figure import Figure
from brittle.report.wording import fixed, interval, plural, range_text, short, show

MAX_CLASSES = 30
"""Classes drawn; of more, the least and the most robust."""


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Means by class, and whether the classes differ; None without classes."""
    bias = contents.bias
    if bias is None:
        return None
    grid = _grid(contents, bias)
    first, last = (f"{row[0]} {row[2]} ({row[3]})" for row in (grid.rows[0], grid.rows[-1]))
    spoken = f"Mean p_robust by class, from {first} to {last}."
    sizes = bias.classes["points"]
    return {
        "figure": Figure(classes_chart, _frame(contents, bias), spoken),
        "by_label": bias.by == "label",
        "count": len(bias.classes),
        "sizes": range_text([f"{sizes.min():,}", f"{sizes.max():,}"]),
        "setting": show(str(bias.column.setting)),
        "spread": fixed(max(bias.classes["mean"]) - min(bias.classes["mean"])),
        "left": plural(len(bias.classes) - MAX_CLASSES, "class") if len(bias.classes) > MAX_CLASSES else "",
        "p": "below 1e-12" if bias.p_value < 1e-12 else short(bias.p_value),
        "differ": bias.differ,
        "grid": grid,
    }


CHAPTER = Chapter("classes", "Robustness by class", summarize)


def classes_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Mean p_robust by class with intervals; a row without numbers marks a gap."""
    names = frame.sort_values("order")["name"].tolist()
    known = alt.Chart(frame.dropna(subset=["value"]))
    y = alt.Y("name:N", scale=alt.Scale(domain=names), title=None, axis=names_axis())
    place, scale = known.encode(y=y, color=alt.value(ACCENT)), alt.Scale(zero=False, nice=True)
    dots = interval_dots(place, title="mean p_robust, further right is safer", scale=scale, axis=few_ticks())
    layers = alt.layer(dashed(known, x="mean(overall):Q"), *dots)
    return layers.properties(width=width_beside(width, names), height=alt.Step(20))


def _frame(contents: Contents, bias: ClassBias) -> pd.DataFrame:
    """Means of the classes, in the order of `bias`; a row without numbers stands for a gap."""
    shown = extreme_classes(bias, MAX_CLASSES)
    names = contents.class_labels(shown)
    left = len(bias.classes) - len(shown)
    rows = [
        {"value": row["mean"], "low": row["low"], "high": row["high"], "name": names[row["class"]]}
        | {"order": shown.index(row["class"]), "overall": bias.column.p_robust.mean()}
        for row in bias.classes.to_dict("records")
        if row["class"] in names
    ]
    rows += [{"name": f"⋮  {left:,} not drawn", "order": len(shown) // 2 - 0.5}] if left > 0 else []
    return pd.DataFrame(rows)


def _grid(contents: Contents, bias: ClassBias) -> Grid:
    rows = [
        (
            contents.class_text(row["class"]),
            f"{row['points']:,}",
            fixed(row["mean"]),
            interval(row["low"], row["high"]),
            fixed(row["median"]),
        )
        for row in bias.classes.to_dict("records")
    ]
    return Grid(("Class", "Points", "Mean p_robust", "Interval", "Median"), rows)
