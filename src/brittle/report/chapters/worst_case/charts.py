"""The figures of the worst case, each for one norm."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import ACCENT, FRAGILE, INK, MUTED, WIDTH, colour, few_ticks

HALF = 400
"""Width of a figure that stands beside another, in pixels."""

KINDS = {"all": INK, "correct": ACCENT, "certified": "#009e73"}
"""The curves of `nearest_chart`, with their colours."""


def nearest_chart(frame: pd.DataFrame) -> Any:
    """The share of points with a margin larger than epsilon, against epsilon, with intervals."""
    names = dict(zip(frame["of"], frame["kind"], strict=True))
    scale = alt.Scale(domain=list(names), range=[KINDS[kind] for kind in names.values()])
    end = max(frame["epsilon"].tolist())
    place = alt.Chart(frame).encode(
        x=alt.X("epsilon:Q", title="epsilon", scale=alt.Scale(domain=[0.0, end], nice=False), axis=_many_ticks()),
        color=alt.Color("of:N", scale=scale, legend=_legend(3)),
    )
    share = alt.Y("share:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", grid=True))
    band = place.mark_area(opacity=0.14, interpolate="step-after").encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    line = place.mark_line(strokeWidth=1.75, interpolate="step-after").encode(y=share)
    return alt.layer(*_chosen(frame), band, line).properties(width=WIDTH - 60, height=260)


def stand_in_chart(frame: pd.DataFrame) -> Any:
    """A score against the input margin; the dashed line is the chosen perturbation size."""
    sides = alt.Scale(domain=["within epsilon", "beyond epsilon"], range=[FRAGILE, ACCENT])
    dots = alt.Chart(frame).mark_circle(size=16, opacity=0.45).encode(
        x=alt.X("margin:Q", title="input margin", axis=few_ticks()),
        y=alt.Y("value:Q", title=frame["title"].tolist()[0], scale=alt.Scale(zero=False), axis=few_ticks()),
        color=alt.Color("side:N", scale=sides, legend=_legend(2)),
    )  # fmt: skip
    return alt.layer(*_chosen(frame), dots).properties(width=HALF, height=280)


def detection_chart(frame: pd.DataFrame) -> Any:
    """AUROC of every score over perturbation sizes, with the interval of the one that the page speaks of."""
    floor = min(0.5, *frame["auroc"].tolist())
    scale = {"title": "AUROC", "scale": alt.Scale(domain=[floor, 1.0], clamp=True), "axis": few_ticks()}
    x = alt.X("epsilon:Q", title="epsilon", scale=alt.Scale(zero=False), axis=few_ticks())
    place = alt.Chart(frame).encode(x=x, color=colour(frame, _legend(2), "title"))
    band = place.transform_filter("datum.main").mark_area(opacity=0.18, clip=True).encode(
        y=alt.Y("auroc_low:Q", **scale), y2="auroc_high:Q"
    )  # fmt: skip
    lines = place.mark_line(strokeWidth=1.75).encode(y=alt.Y("auroc:Q", **scale))
    marks = place.mark_point(filled=True, size=26, opacity=1).encode(y="auroc:Q")
    return alt.layer(*_chosen(frame), band, lines, marks).properties(width=HALF, height=280)


def _chosen(frame: pd.DataFrame) -> tuple[Any, ...]:
    """A dashed line at the chosen perturbation size."""
    at = alt.Chart(pd.DataFrame({"chosen": [frame["chosen"].tolist()[0]]}))
    return (at.mark_rule(stroke=MUTED, strokeDash=[4, 3]).encode(x="chosen:Q"),)


def _many_ticks() -> alt.Axis:
    return alt.Axis(tickCount=8, grid=True)


def _legend(columns: int) -> alt.Legend:
    """A legend above the drawing, in so many columns."""
    return alt.Legend(title=None, orient="top", columns=columns, symbolSize=60, symbolOpacity=1, columnPadding=16)
