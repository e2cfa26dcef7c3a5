"""The figures of other runs."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import (
    ACCENT,
    FRAGILE,
    INK,
    MUTED,
    NARROW,
    beside_names,
    few_ticks,
    interval_bars,
    names_axis,
)
from brittle.report.charts_symlog import inside, symlog

LONGEST = 290
"""Widest name of a score in a figure that has room for it, in pixels."""


def difference_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Mean paired differences with intervals, one row per score, each turned so that right is safer in this run."""
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(stroke=MUTED, strokeDash=[4, 3]).encode(x="zero:Q")
    names = min(LONGEST, width // 2 - 20)
    axis = alt.Axis(ticks=False, domain=False, labelLimit=names, labelFontSize=12, labelColor=INK, labelPadding=8)
    place = alt.Chart(frame).encode(y=alt.Y("name:N", sort=_ordered(), title=None, axis=axis))
    title = ["this run minus the other,", "right of 0 this run is safer"]
    x = {"title": title, "axis": alt.Axis(tickCount=max(width // 150, 3), grid=True)}
    bars = interval_bars(place, alt.X("low:Q", **x), "high:Q", stroke=ACCENT)
    dots = place.mark_point(filled=True, size=46, opacity=1, color=ACCENT).encode(x=alt.X("value:Q", **x))
    return alt.layer(zero, bars, dots).properties(width=width - names - 30, height=alt.Step(20))


def spread_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Quantiles of both runs: the box from 25% to 75%, the line from 5% to 95%, the mark at the median."""
    quantiles = ["q05", "q25", "q50", "q75", "q95"]
    found = symlog(frame[quantiles].to_numpy().ravel())
    scale, axis = (alt.Scale(zero=False), few_ticks()) if all(frame["bounded"].tolist()) else (found.scale, found.axis)
    colours = alt.Scale(domain=frame["run"].tolist(), range=[ACCENT, FRAGILE])
    place = alt.Chart(frame).encode(
        y=alt.Y("run:N", sort=_ordered(), title=None, axis=names_axis()),
        color=alt.Color("run:N", scale=colours, legend=None),
    )
    x = {"title": _spoken(frame, "further right"), "scale": scale, "axis": axis}
    line = place.mark_rule(strokeWidth=1.25).encode(x=alt.X("q05:Q", **x), x2="q95:Q")
    box = place.mark_bar(size=8, opacity=1).encode(x=alt.X("q25:Q", **x), x2="q75:Q")
    middle = place.mark_tick(size=20, thickness=3, opacity=1).encode(x=alt.X("q50:Q", **x), color=alt.value(INK))
    plot = beside_names(width, frame["run"].tolist())
    return alt.layer(line, box, middle).properties(width=plot, height=alt.Step(30))


def series_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """A mean over several runs, in the order given, with intervals; the dashed line is this run."""
    names = frame["name"].tolist()
    slanted = len(names) * max(len(name) for name in names) > 40
    axis = alt.Axis(
        ticks=False, labelAngle=-40 if slanted else 0, labelFontSize=11, labelColor=INK, labelLimit=150, domain=True,
        labelOverlap=False,
    )  # fmt: skip
    ends = [end for end in (*frame["low"], *frame["high"]) if math.isfinite(end)]
    top = 1.05 * max([*frame["value"], *frame["this"], *ends])
    top = min(top, 1.0) if all(frame["bounded"].tolist()) else top
    scale = alt.Scale(domain=[0.0, top or 1.0], nice=True)
    kept = inside(frame, (0.0, top or 1.0))
    y = {"title": _spoken(frame, "higher"), "scale": scale, "axis": few_ticks()}
    place = alt.Chart(kept).encode(x=alt.X("name:N", sort=_ordered(), title=None, axis=axis))
    this = alt.Chart(kept.head(1)).mark_rule(stroke=MUTED, strokeDash=[4, 3]).encode(y=alt.Y("this:Q", **y))
    bars = place.mark_rule(strokeWidth=2, stroke=ACCENT).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    dots = place.mark_point(filled=True, size=46, opacity=1, color=ACCENT).encode(y=alt.Y("value:Q", **y))
    return alt.layer(this, bars, dots).properties(width=width - 64, height=220)


def _ordered() -> alt.EncodingSortField:
    """Rows in the order of the frame."""
    return alt.EncodingSortField("order", op="min")


def _spoken(frame: pd.DataFrame, safer: str) -> list[str]:
    """The title of an axis: what stands on it, and below which direction is safer; `bounded` are shares that hold."""
    title = str(frame["title"].iloc[0])
    return [title, f"{safer} is safer" if all(frame["bounded"].tolist()) else "nearer to 0 changes less"]
