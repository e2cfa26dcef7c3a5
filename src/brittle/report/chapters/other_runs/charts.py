"""The figures of other runs."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import ACCENT, BESIDE, FRAGILE, INK, MUTED, WIDTH, few_ticks, names_axis, text_width
from brittle.report.charts_symlog import inside, symlog


def difference_chart(frame: pd.DataFrame) -> Any:
    """Mean paired differences with intervals, one row per score; the dashed line is no difference."""
    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(stroke=MUTED, strokeDash=[4, 3]).encode(x="zero:Q")
    place = alt.Chart(frame).encode(
        y=alt.Y("name:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=_wide_names())
    )
    x = {"title": "this run minus the other, mean over paired points", "axis": alt.Axis(tickCount=6, grid=True)}
    bars = place.mark_rule(strokeWidth=5, opacity=0.28, stroke=ACCENT).encode(x=alt.X("low:Q", **x), x2="high:Q")
    dots = place.mark_point(filled=True, size=46, opacity=1, color=ACCENT).encode(x=alt.X("value:Q", **x))
    return alt.layer(zero, bars, dots).properties(width=WIDTH - 320, height=alt.Step(20))


def _wide_names() -> alt.Axis:
    return alt.Axis(ticks=False, domain=False, labelLimit=290, labelFontSize=12, labelColor=INK, labelPadding=8)


def spread_chart(frame: pd.DataFrame) -> Any:
    """Quantiles of both runs: the box from 25% to 75%, the line from 5% to 95%, the mark at the median."""
    quantiles = ["q05", "q25", "q50", "q75", "q95"]
    found = symlog(frame[quantiles].to_numpy().ravel())
    colours = alt.Scale(domain=frame["run"].tolist(), range=[ACCENT, FRAGILE])
    place = alt.Chart(frame).encode(
        y=alt.Y("run:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=names_axis()),
        color=alt.Color("run:N", scale=colours, legend=None),
    )
    x = {"title": frame["title"].tolist()[0], "scale": found.scale, "axis": found.axis}
    line = place.mark_rule(strokeWidth=1.25).encode(x=alt.X("q05:Q", **x), x2="q95:Q")
    box = place.mark_bar(size=14, opacity=0.35).encode(x=alt.X("q25:Q", **x), x2="q75:Q")
    middle = place.mark_tick(size=14, thickness=2, opacity=1).encode(x=alt.X("q50:Q", **x))
    width = BESIDE - text_width(frame["run"].tolist())
    return alt.layer(line, box, middle).properties(width=width, height=alt.Step(30))


def series_chart(frame: pd.DataFrame) -> Any:
    """A mean over several runs, in the order given, with intervals; the dashed line is this run."""
    names = frame["name"].tolist()
    slanted = len(names) * max(len(name) for name in names) > 60
    axis = alt.Axis(
        ticks=False, labelAngle=-40 if slanted else 0, labelFontSize=11, labelColor=INK, labelLimit=150, domain=True,
        labelOverlap=False,
    )  # fmt: skip
    ends = [end for end in (*frame["low"], *frame["high"]) if math.isfinite(end)]
    top = 1.05 * max([*frame["value"], *frame["this"], *ends])
    scale = alt.Scale(domain=[0.0, top or 1.0], nice=True)
    kept = inside(frame, (0.0, top or 1.0))
    y = {"title": frame["title"].tolist()[0], "scale": scale, "axis": few_ticks()}
    place = alt.Chart(kept).encode(
        x=alt.X("name:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=axis)
    )
    this = alt.Chart(kept.head(1)).mark_rule(stroke=MUTED, strokeDash=[4, 3]).encode(y=alt.Y("this:Q", **y))
    bars = place.mark_rule(strokeWidth=5, opacity=0.28, stroke=ACCENT).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    dots = place.mark_point(filled=True, size=46, opacity=1, color=ACCENT).encode(y=alt.Y("value:Q", **y))
    return alt.layer(this, bars, dots).properties(width=BESIDE - 50, height=240)
