"""The figures of the worst case, each for one norm."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import ACCENT, FRAGILE, INK, MUTED, NARROW, colour, few_ticks

KINDS = {"all": INK, "correct": ACCENT, "certified": "#0c8645"}
"""The curves of `nearest_chart`, with their colours."""

MISSED = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Ticks of an AUROC, as what it is short of 1."""

LEAST_MISSED = 5e-4
"""What the best AUROC that is drawn is short of 1; better ones are drawn there."""


def nearest_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """The share of points with a margin larger than epsilon, against epsilon, with intervals."""
    names = dict(zip(frame["of"], frame["kind"], strict=True))
    scale = alt.Scale(domain=list(names), range=[KINDS[kind] for kind in names.values()])
    end = max(frame["epsilon"].tolist())
    ticks = alt.Axis(tickCount=max(width // 110, 3), grid=True)
    place = alt.Chart(frame).encode(
        x=alt.X("epsilon:Q", title="epsilon", scale=alt.Scale(domain=[0.0, end], nice=False), axis=ticks),
        color=alt.Color("of:N", scale=scale, legend=_legend(max(width // 300, 1))),
    )
    share = alt.Axis(format="%", grid=True)
    y = {"title": "share of the points, higher is safer", "scale": alt.Scale(domain=[0, 1]), "axis": share}
    band = place.mark_area(opacity=0.14, interpolate="step-after").encode(y=alt.Y("low:Q", **y), y2="high:Q")
    ends = [
        place.mark_line(strokeWidth=0.75, interpolate="step-after").encode(y=alt.Y(f"{end}:Q", **y))
        for end in ("low", "high")
    ]
    line = place.mark_line(strokeWidth=2.25, interpolate="step-after").encode(y=alt.Y("share:Q", **y))
    return alt.layer(*_chosen(frame), band, *ends, line).properties(width=width - 64, height=min(260, width - 96))


def stand_in_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """A score against the input margin; the dashed line is the chosen perturbation size."""
    sides = alt.Scale(domain=["within epsilon", "beyond epsilon"], range=[FRAGILE, ACCENT])
    title = f"{frame['title'].tolist()[0]}, higher is safer"
    dots = alt.Chart(frame).mark_circle(size=9, opacity=1).encode(
        x=alt.X("margin:Q", title="input margin, further right is safer", axis=few_ticks()),
        y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=False), axis=few_ticks()),
        color=alt.Color("side:N", scale=sides, legend=_legend(2)),
    )  # fmt: skip
    return alt.layer(*_chosen(frame), dots).properties(width=width - 64, height=240)


def detection_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """AUROC of every score over perturbation sizes, with the interval of the one that the page speaks of.

    The axis is logarithmic in `1 - AUROC`, so that curves near the best value stay apart.
    """
    names = ("auroc", "auroc_low", "auroc_high")
    missed = {f"missed_{name}": (1.0 - frame[name]).clip(lower=LEAST_MISSED) for name in names}
    drawn = frame.assign(**missed)
    least, most = min(missed["missed_auroc"].tolist()), max(0.5, *missed["missed_auroc"].tolist())
    ticks = [tick for tick in MISSED if least / 2 <= tick <= most]
    axis = alt.Axis(values=ticks, labelExpr="format(1 - datum.value, '.3~f')", grid=True, minExtent=40)
    scale = alt.Scale(type="log", domain=[most, max(least / 1.5, LEAST_MISSED)], clamp=True, nice=False)
    y = {"title": "AUROC, higher is better", "scale": scale, "axis": axis}
    x = alt.X("epsilon:Q", title="epsilon", scale=alt.Scale(zero=False), axis=few_ticks())
    place = alt.Chart(drawn).encode(x=x, color=colour(frame, _legend(max(width // 170, 1)), "title"))
    band = place.transform_filter("datum.main").mark_area(opacity=0.18, clip=True).encode(
        y=alt.Y("missed_auroc_low:Q", **y), y2="missed_auroc_high:Q"
    )  # fmt: skip
    ends = [
        place.transform_filter("datum.main")
        .mark_line(strokeWidth=0.75, clip=True)
        .encode(y=alt.Y(f"missed_{end}:Q", **y))
        for end in names[1:]
    ]
    lines = place.mark_line(strokeWidth=1.75).encode(y=alt.Y("missed_auroc:Q", **y))
    marks = place.mark_point(filled=True, size=26, opacity=1).encode(y="missed_auroc:Q")
    return alt.layer(*_chosen(frame), band, *ends, lines, marks).properties(width=width - 64, height=240)


def _chosen(frame: pd.DataFrame) -> tuple[Any, ...]:
    """A dashed line at the chosen perturbation size."""
    at = alt.Chart(pd.DataFrame({"chosen": [frame["chosen"].tolist()[0]]}))
    return (at.mark_rule(stroke=MUTED, strokeDash=[4, 3]).encode(x="chosen:Q"),)


def _legend(columns: int) -> alt.Legend:
    """A legend above the drawing, in so many columns."""
    return alt.Legend(
        title=None, orient="top", columns=columns, symbolSize=60, symbolOpacity=1, columnPadding=12, labelLimit=270
    )
