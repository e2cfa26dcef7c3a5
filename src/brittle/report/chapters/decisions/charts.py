"""How many points of each class hold."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.analysis.decisions import STATES
from brittle.report.charts_style import ACCENT, FRAGILE, GAP, RULE, by_setting, names_axis, panel_width, text_width

COLOURS = dict(zip(STATES, (ACCENT, FRAGILE, RULE), strict=True))
"""Of what a point may be."""


def decisions_chart(frame: pd.DataFrame) -> Any:
    """The share of each class that holds, is undecided and breaks: one panel per question."""
    width = panel_width(frame["setting"].tolist(), text_width(frame["name"].tolist()))
    bars = alt.Chart(frame).mark_bar().encode(
        x=alt.X("points:Q", stack="normalize", title="share of the points", axis=alt.Axis(format="%", tickCount=5)),
        y=alt.Y("name:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=names_axis()),
        color=alt.Color("state:N", scale=alt.Scale(domain=list(COLOURS), range=[*COLOURS.values()]), title=None),
        order=alt.Order("place:Q"),
    )  # fmt: skip
    return bars.properties(width=width, height=alt.Step(20)).facet(column=by_setting(), spacing=GAP)
