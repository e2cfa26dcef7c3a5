"""Robustness against scores that know no noise."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import (
    colour,
    few_ticks,
    heading,
    value_axis,
)

SIDE = 210
"""Width of a drawing, in pixels."""


def cheap_scores_chart(frame: pd.DataFrame) -> Any:
    """p_robust against one score that knows no noise."""
    axis = value_axis([0, 0.5, 1])
    dots = alt.Chart(frame).mark_circle(size=9, opacity=1).encode(
        x=alt.X("value:Q", title=None, scale=alt.Scale(zero=False), axis=few_ticks()),
        y=alt.Y("p_robust:Q", title="p_robust, higher is safer", scale=alt.Scale(domain=[0, 1]), axis=axis),
        color=colour(frame, legend=None, field="title"),
    )  # fmt: skip
    return dots.properties(width=SIDE, height=SIDE, title=heading(frame, "title"))
