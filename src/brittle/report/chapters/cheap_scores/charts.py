"""Robustness against scores that know no noise."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import (
    GAP,
    WIDTH,
    by_order,
    colour,
    few_ticks,
    panel_width,
    value_axis,
)

MAX_COLUMNS = 5
"""Panels beside each other where there is one for every score."""


def cheap_scores_chart(frame: pd.DataFrame) -> Any:
    """p_robust against each score that knows no noise."""
    dots = alt.Chart(frame).mark_circle(size=16, opacity=0.45).encode(
        x=alt.X("value:Q", title=None, scale=alt.Scale(zero=False), axis=few_ticks()),
        y=alt.Y("p_robust:Q", title="p_robust", scale=alt.Scale(domain=[0, 1]), axis=value_axis([0, 0.5, 1])),
        color=colour(frame, legend=None, field="title"),
    )  # fmt: skip
    count = len(set(frame["title"]))
    if count <= MAX_COLUMNS:
        width = panel_width(frame["title"].tolist(), 50)
        facets = dots.properties(width=width, height=230).facet(column=by_order(alt.Column, "title"), spacing=GAP)
    else:
        width = (WIDTH - 50 - GAP * (MAX_COLUMNS - 1)) // MAX_COLUMNS
        facets = dots.properties(width=width, height=150).facet(
            by_order(alt.Facet, "title"), columns=MAX_COLUMNS, spacing=GAP
        )
    return facets.resolve_scale(x="independent")
