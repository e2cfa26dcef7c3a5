"""How many points of each class hold."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.analysis.decisions import STATES
from brittle.report.charts_style import ACCENT, FRAGILE, NARROW, UNDECIDED, beside_names, heading, names_axis

COLOURS = dict(zip(STATES, (ACCENT, FRAGILE, UNDECIDED), strict=True))
"""Of what a point may be."""


def decisions_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """The share of each class that holds, is undecided and breaks, for one question."""
    names = frame.sort_values("order")["name"].drop_duplicates().tolist()
    scale = alt.Scale(domain=list(COLOURS), range=[*COLOURS.values()])
    bars = alt.Chart(frame).mark_bar().encode(
        x=alt.X("points:Q", stack="normalize", title="share of the points", axis=alt.Axis(format="%", tickCount=4)),
        y=alt.Y("name:N", scale=alt.Scale(domain=names), title=None, axis=names_axis()),
        color=alt.Color("state:N", scale=scale, legend=alt.Legend(title=None, orient="top", columns=3)),
        order=alt.Order("place:Q"),
    )  # fmt: skip
    return bars.properties(width=beside_names(width, names), height=alt.Step(20), title=heading(frame))
