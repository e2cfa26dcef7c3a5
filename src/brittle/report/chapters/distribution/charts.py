"""Histograms of p_robust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import (
    GAP,
    by_order,
    by_setting,
    colour,
    panel_width,
    text_width,
    value_axis,
)


def distribution_chart(frame: pd.DataFrame) -> Any:
    """Histograms of p_robust: one row per estimator, one column per noise level."""
    few = len(set(frame["estimator"])) <= 2
    shares = alt.Axis(orient="right", format="%", values=[0.0, _mark(frame["share"].tolist())], grid=True)
    bars = alt.Chart(frame).mark_bar(binSpacing=1).encode(
        x=alt.X(
            "start:Q", bin="binned", scale=alt.Scale(domain=[0, 1]), title="p_robust", axis=value_axis([0, 0.5, 1])
        ),
        x2="end:Q",
        y=alt.Y("share:Q", title=None, axis=shares),
        color=colour(frame, legend=None),
    )  # fmt: skip
    width = panel_width(frame["setting"].tolist(), text_width(frame["estimator"].tolist()) + 36)
    return bars.properties(width=width, height=100 if few else 46).facet(
        row=by_order(alt.Row, "estimator", labelAngle=0, labelAlign="left", labelFontWeight=400),
        column=by_setting(),
        spacing={"row": 10, "column": GAP},
    )


def _mark(shares: Sequence[float]) -> float:
    """The largest round share that one of `shares` reaches."""
    return max((share for share in (0.5, 0.2, 0.1, 0.05) if share <= max(shares)), default=0.02)
