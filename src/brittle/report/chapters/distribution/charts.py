"""Histograms of the flip probability, on a scale that shows its tail."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import ACCENT, FRAGILE, INK, NARROW, UNDECIDED, by_order, heading
from brittle.store.columns import BREAKS, HOLDS
from brittle.store.columns import UNDECIDED as OPEN

COLOURS = {HOLDS: ACCENT, OPEN: UNDECIDED, BREAKS: FRAGILE}
"""Of what a point may be."""


def distribution_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Histograms of the flip probability at one noise level: one row per estimator, bins that widen with it."""
    bins = frame.sort_values("place_of_bin")["bin"].drop_duplicates().tolist()
    scale = alt.Scale(domain=list(COLOURS), range=[*COLOURS.values()])
    bin_scale = alt.Scale(domain=bins, paddingInner=0.06)
    shares = alt.Axis(orient="right", format="%", tickCount=2, grid=True)
    x_axis = alt.Axis(labelAngle=-60, labelColor=INK, ticks=False, labelOverlap=False)
    bars = alt.Chart(frame).mark_bar().encode(
        x=alt.X("bin:N", scale=bin_scale, title="flip probability, further left is safer", axis=x_axis),
        y=alt.Y("share:Q", title=None, axis=shares),
        color=alt.Color("state:N", scale=scale, legend=alt.Legend(title=None, orient="top", columns=3)),
        order=alt.Order("rank:Q"),
    )  # fmt: skip
    row = by_order(alt.Row, "estimator", labelAngle=0, labelOrient="top", labelAnchor="start", labelFontWeight=400)
    return bars.properties(width=width - 50, height=56).facet(row=row, spacing=16, title=heading(frame))
