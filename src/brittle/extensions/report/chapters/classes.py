"""Robustness by class."""

from typing import Any

import altair as alt
import pandas as pd

from brittle.analysis.class_bias import ClassBias
from brittle.analysis.class_votes import confusions, has_votes
from brittle.analysis.columns import class_of
from brittle.extensions.report import charts
from brittle.extensions.report.chapter import Chapter, Grid
from brittle.extensions.report.contents import Contents, extreme_classes
from brittle.extensions.report.figure import Figure
from brittle.extensions.report.wording import fixed, interval, percent, plural, range_text, show
from brittle.store.representative import preferred
from brittle.text import number

MAX_CLASSES = 30  # classes drawn; of more, the least and the most robust

FEW_CLASSES, MAX_LEVELS = 10, 4
"""Classes that are drawn at several levels of noise, and levels: the least, the largest and some between."""

MOST_CONFUSED = 5  # pairs of classes that noise turns into one another, the most frequent first
MOST = (0.1, 0.5, 0.9)  # the quantiles that are drawn of the points of a class


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Means by class, and whether the classes differ; None without classes."""
    bias = contents.bias
    if bias is None:
        return None
    grid = _grid(contents, bias)
    first_row, last_row = (f"{row[0]} {row[2]} ({row[3]})" for row in (grid.rows[0], grid.rows[-1]))
    alt_text = f"Mean p_robust by class, from {first_row} to {last_row}."
    sizes, levels = bias.classes["points"], _by_level(contents, bias)
    medians = (f"{row['name']} {fixed(row['value'])} at {row['level']}" for row in levels.to_dict("records"))
    return {
        "figure": Figure(classes_chart, _frame(contents, bias), alt_text),
        "levels": Figure(levels_chart, levels, f"Medians of p_robust: {', '.join(medians)}."),
        "confused": _confused(contents),
        "by_label": bias.by == "label",
        "count": len(bias.classes),
        "sizes": range_text([f"{sizes.min():,}", f"{sizes.max():,}"]),
        "setting": show(str(bias.column.setting)),
        "spread": fixed(max(bias.classes["mean"]) - min(bias.classes["mean"])),
        "left": plural(len(bias.classes) - MAX_CLASSES, "class") if len(bias.classes) > MAX_CLASSES else "",
        "p": number(bias.p_value),
        "differ": bias.differ,
        "grid": grid,
    }


CHAPTER = Chapter("classes", "Robustness by class", summarize)


def classes_chart(frame: pd.DataFrame, width: int = charts.NARROW) -> Any:
    """Mean p_robust by class with intervals; a row without numbers marks a gap."""
    names = frame.sort_values("order")["name"].tolist()
    base = alt.Chart(frame.dropna(subset=["value"]))
    y = alt.Y("name:N", scale=alt.Scale(domain=names), title=None, axis=charts.names_axis())
    row, scale = base.encode(y=y, color=alt.value(charts.ACCENT)), alt.Scale(zero=False, nice=True)
    dot = charts.interval_dots(row, title="mean p_robust, further right is safer", scale=scale, axis=charts.few_ticks())
    layers = alt.layer(charts.dashed(base, x="mean(overall):Q"), *dot)
    return layers.properties(width=charts.width_beside(width, names), height=alt.Step(20))


def _confused(contents: Contents) -> Grid | None:
    """Return what noise turns classes into most often; None where no count tells."""
    if not any(map(has_votes, contents.columns)):
        return None
    rows = [
        (contents.class_text(row["class"]), contents.class_text(row["becomes"]), percent(row["share"]))
        for row in confusions(contents).head(MOST_CONFUSED).to_dict("records")
    ]
    return Grid(("Class", "Becomes", "Noisy copies"), rows, frozenset({0, 1})) if rows else None


def levels_chart(frame: pd.DataFrame, width: int = charts.NARROW) -> Any:
    """Draw `p_robust` in each class at each level of noise: a bar between quantiles, a dot at the median."""
    names, levels = frame["name"].unique().tolist(), frame["level"].unique().tolist()
    y = alt.Y("name:N", scale=alt.Scale(domain=names), title=None, axis=charts.names_axis())
    colours = alt.Scale(domain=levels, range=[*charts.CLAIMED[1 : 1 + len(levels)]])
    colour = alt.Color("level:N", scale=colours, legend=charts.legend(2 if width == charts.NARROW else MAX_LEVELS))
    base = alt.Chart(frame).encode(y=y, yOffset=alt.YOffset("level:N", sort=levels), color=colour)
    dots = charts.interval_dots(
        base, title="p_robust, further right is safer", scale=alt.Scale(domain=[0, 1]), axis=charts.few_ticks()
    )
    return alt.layer(*dots).properties(width=charts.width_beside(width, names), height=alt.Step(9))


def _by_level(contents: Contents, bias: ClassBias) -> pd.DataFrame:
    """Quantiles of `p_robust` of the points of each class at each level; empty for one level."""
    settings = contents.settings
    if len(settings) < 2:
        return pd.DataFrame()
    steps = min(MAX_LEVELS, len(settings)) - 1
    shown = [settings[round(place * (len(settings) - 1) / steps)] for place in range(steps + 1)]
    columns = {contents.noise_text(setting): preferred(contents.columns, setting) for setting in shown}
    classes: Any = class_of(contents)[1]
    return pd.DataFrame(
        [
            dict(zip(("low", "value", "high"), values.quantile(MOST), strict=True)) | {"name": name, "level": level}
            for number, name in contents.class_labels(extreme_classes(bias, FEW_CLASSES)).items()
            for level, column in columns.items()
            if column is not None and len(values := pd.Series(column.p_robust[classes == number]).dropna())
        ]
    )


def _frame(contents: Contents, bias: ClassBias) -> pd.DataFrame:
    """Means of the classes, in the order of `bias`; a row without numbers stands for a gap."""
    shown = extreme_classes(bias, MAX_CLASSES)
    names = contents.class_labels(shown)
    hidden_count = len(bias.classes) - len(shown)
    rows = [
        {"value": row["mean"], "low": row["low"], "high": row["high"], "name": names[row["class"]]}
        | {"order": shown.index(row["class"]), "overall": bias.column.p_robust.mean()}
        for row in bias.classes.to_dict("records")
        if row["class"] in names
    ]
    rows += [{"name": f"⋮  {hidden_count:,} not drawn", "order": len(shown) // 2 - 0.5}] if hidden_count > 0 else []
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
