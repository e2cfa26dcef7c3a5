"""The figures of the expected change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import (
    ACCENT,
    FRAGILE,
    MUTED,
    NARROW,
    UNDECIDED,
    beside_names,
    heading,
    interval_bars,
    names_axis,
)
from brittle.report.charts_symlog import inside, symlog

KINDS = {
    "same sign": (ACCENT, "circle"),
    "sign not decided by sampling": (UNDECIDED, "circle"),
    "other sign": (FRAGILE, "triangle-up"),
    "kink of the network": ("#af3b8f", "diamond"),
}
"""Colour and shape of each kind of point, in the order of the legend."""

GROUPS = {
    "lowest Laplacian": FRAGILE,
    "highest Laplacian": ACCENT,
    "flipped at least once": FRAGILE,
    "never flipped": ACCENT,
}
"""Colour of each group; what flips, or is expected to, has one colour in both figures."""


def change_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Sampled change against the predicted one at one noise setting; the dashed line is the theory."""
    side = min(width - 66, 420)
    kinds = [kind for kind in KINDS if kind in set(frame["kind"])]
    both = symlog([*frame["predicted"], *frame["sampled"]])
    low, high = both.domain
    x = alt.X("predicted:Q", title="predicted change", scale=both.scale, axis=both.axis)
    y = {
        "title": "sampled mean change, higher is safer",
        "scale": both.scale,
        "axis": alt.Axis(**both.axis.to_dict(), minExtent=44),
    }
    rank = {kind: place for place, kind in enumerate(("sign not decided by sampling", *KINDS))}
    ordered = frame.assign(rank=[rank[kind] for kind in frame["kind"]]).sort_values("rank", kind="stable")
    ordered = ordered.assign(low=ordered["low"].clip(low, high), high=ordered["high"].clip(low, high))
    legend = alt.Legend(title=None, orient="top", columns=1, symbolSize=60, symbolOpacity=1, labelLimit=220)
    place = alt.Chart(ordered).encode(
        x=x, color=alt.Color("kind:N", scale=_kind_scale(kinds, 0), legend=legend, sort=None)
    )
    ends = alt.Chart(pd.DataFrame({"predicted": [low, high], "sampled": [low, high]}))
    theory = ends.mark_line(stroke=MUTED, strokeDash=[4, 3], strokeWidth=1).encode(x=x, y=alt.Y("sampled:Q", **y))
    bars = place.mark_rule(strokeWidth=0.75, opacity=0.6).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    dots = place.mark_point(filled=True, size=16, opacity=1).encode(
        y=alt.Y("sampled:Q", **y), shape=alt.Shape("kind:N", scale=_kind_scale(kinds, 1), legend=legend, sort=None)
    )
    return alt.layer(theory, bars, dots).properties(width=side, height=side, title=heading(frame))


def _kind_scale(kinds: Sequence[str], part: int) -> alt.Scale:
    return alt.Scale(domain=list(kinds), range=[KINDS[kind][part] for kind in kinds])


def shares_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Shares of flips of two groups, one row per noise setting."""
    top = max([0.01, *frame["high"].tolist()])
    axis = alt.Axis(format="%", tickCount=4, grid=True)
    return _groups_chart(
        frame, width, "flips, further left is safer", alt.Scale(domain=[0.0, min(1.0, top)], nice=True), axis
    )


def means_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Mean Laplacians of two groups, one row per noise setting."""
    ends = [end for end in (*frame["low"], *frame["high"]) if math.isfinite(end)]
    found = symlog([*frame["value"], *ends])
    return _groups_chart(inside(frame, found.domain), width, "mean Laplacian", found.scale, found.axis)


def _groups_chart(frame: pd.DataFrame, width: int, title: str, scale: alt.Scale, axis: alt.Axis) -> Any:
    groups = [group for group in GROUPS if group in set(frame["group"])]
    colours = alt.Scale(domain=groups, range=[GROUPS[group] for group in groups])
    legend = alt.Legend(title=None, orient="top", columns=1, symbolSize=60, symbolOpacity=1)
    place = alt.Chart(frame).encode(
        y=alt.Y("setting:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=names_axis()),
        yOffset=alt.YOffset("group:N", sort=groups),
        color=alt.Color("group:N", scale=colours, legend=legend, sort=groups),
    )
    x = {"title": title, "scale": scale, "axis": axis}
    bars = interval_bars(place, alt.X("low:Q", **x), "high:Q")
    dots = place.mark_point(filled=True, size=46, opacity=1).encode(x=alt.X("value:Q", **x))
    return alt.layer(bars, dots).properties(width=beside_names(width, frame["setting"].tolist()), height=alt.Step(20))
