"""The figures of the expected change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import ACCENT, BESIDE, FRAGILE, GAP, INK, MUTED, names_axis, panel_width, text_width
from brittle.report.charts_symlog import inside, symlog

KINDS = {
    "same sign": (ACCENT, "circle"),
    "sign not decided by sampling": ("#8a94a0", "circle"),
    "other sign": (FRAGILE, "triangle-up"),
    "kink of the network": ("#8f3b76", "diamond"),
}
"""Colour and shape of each kind of point, in the order of the legend."""

GROUPS = {
    "lowest Laplacian": FRAGILE,
    "highest Laplacian": ACCENT,
    "flipped at least once": FRAGILE,
    "never flipped": ACCENT,
}
"""Colour of each group; what flips, or is expected to, has one colour in both figures."""


def change_chart(frame: pd.DataFrame) -> Any:
    """Sampled change against the predicted one, a square for every noise setting; the dashed line is the theory."""
    names = list(dict.fromkeys(frame["setting"]))
    side = min(panel_width(names, 46 * len(names)), 380)
    kinds = [kind for kind in KINDS if kind in set(frame["kind"])]
    panels = [_change_panel(frame.loc[frame["setting"] == name], name, kinds, side, name == names[0]) for name in names]
    return alt.hconcat(*panels, spacing=GAP).resolve_scale(color="shared", shape="shared")


def _change_panel(frame: pd.DataFrame, name: str, kinds: Sequence[str], side: int, first: bool) -> Any:
    both = symlog([*frame["predicted"], *frame["sampled"]])
    low, high = both.domain
    x = alt.X("predicted:Q", title="predicted change", scale=both.scale, axis=both.axis)
    title = "sampled mean change" if first else None
    rank = {kind: place for place, kind in enumerate(("sign not decided by sampling", *KINDS))}
    ordered = frame.assign(rank=[rank[kind] for kind in frame["kind"]]).sort_values("rank", kind="stable")
    ordered = ordered.assign(low=ordered["low"].clip(low, high), high=ordered["high"].clip(low, high))
    legend = alt.Legend(title=None, orient="top", columns=4, symbolSize=60, symbolOpacity=1, columnPadding=18)
    place = alt.Chart(ordered).encode(
        x=x, color=alt.Color("kind:N", scale=_kind_scale(kinds, 0), legend=legend, sort=None)
    )
    ends = alt.Chart(pd.DataFrame({"predicted": [low, high], "sampled": [low, high]}))
    y = alt.Y("sampled:Q", title=title, scale=both.scale, axis=both.axis)
    theory = ends.mark_line(stroke=MUTED, strokeDash=[4, 3], strokeWidth=1).encode(x=x, y=y)
    bars = place.mark_rule(strokeWidth=0.75, opacity=0.3).encode(
        y=alt.Y("low:Q", title=title, scale=both.scale, axis=both.axis), y2="high:Q"
    )
    dots = place.mark_point(filled=True, size=20, opacity=0.6).encode(
        y=y, shape=alt.Shape("kind:N", scale=_kind_scale(kinds, 1), legend=legend, sort=None)
    )
    heading = alt.TitleParams(name, fontSize=12, fontWeight=600, color=INK, anchor="middle", frame="group")
    return alt.layer(theory, bars, dots).properties(width=side, height=side, title=heading)


def _kind_scale(kinds: Sequence[str], part: int) -> alt.Scale:
    return alt.Scale(domain=list(kinds), range=[KINDS[kind][part] for kind in kinds])


def shares_chart(frame: pd.DataFrame) -> Any:
    """Shares of flips of two groups, one row per noise setting."""
    top = max([0.01, *frame["high"].tolist()])
    axis = alt.Axis(format="%", tickCount=4, grid=True)
    return _groups_chart(frame, "flips", alt.Scale(domain=[0.0, min(1.0, top)], nice=True), axis)


def means_chart(frame: pd.DataFrame) -> Any:
    """Mean Laplacians of two groups, one row per noise setting."""
    ends = [end for end in (*frame["low"], *frame["high"]) if math.isfinite(end)]
    found = symlog([*frame["value"], *ends])
    return _groups_chart(inside(frame, found.domain), "mean Laplacian", found.scale, found.axis)


def _groups_chart(frame: pd.DataFrame, title: str, scale: alt.Scale, axis: alt.Axis) -> Any:
    groups = [group for group in GROUPS if group in set(frame["group"])]
    colours = alt.Scale(domain=groups, range=[GROUPS[group] for group in groups])
    legend = alt.Legend(title=None, orient="top", columns=2, symbolSize=60, symbolOpacity=1, columnPadding=16)
    place = alt.Chart(frame).encode(
        y=alt.Y("setting:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=names_axis()),
        yOffset=alt.YOffset("group:N", sort=groups),
        color=alt.Color("group:N", scale=colours, legend=legend, sort=groups),
    )
    x = {"title": title, "scale": scale, "axis": axis}
    bars = place.mark_rule(strokeWidth=5, opacity=0.28).encode(x=alt.X("low:Q", **x), x2="high:Q")
    dots = place.mark_point(filled=True, size=46, opacity=1).encode(x=alt.X("value:Q", **x))
    return alt.layer(bars, dots).properties(width=BESIDE - text_width(frame["setting"].tolist()), height=alt.Step(20))
