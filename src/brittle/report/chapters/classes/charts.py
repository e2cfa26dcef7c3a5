"""Mean robustness by class."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import (
    ACCENT,
    MUTED,
    NARROW,
    beside_names,
    few_ticks,
    heading,
    interval_bars,
    names_axis,
)


def classes_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Mean p_robust by class with intervals at one noise level; a row without numbers marks what is left out."""
    names = frame.sort_values("order")["name"].tolist()
    rows = alt.Y("name:N", scale=alt.Scale(domain=names), title=None, axis=names_axis())
    known = alt.Chart(frame.dropna(subset=["mean"]))
    base = known.encode(y=rows)
    title = "mean p_robust, further right is safer"
    x = alt.X("low:Q", title=title, scale=alt.Scale(zero=False, nice=True), axis=few_ticks())
    layers = alt.layer(
        known.mark_rule(stroke=MUTED, strokeDash=[3, 3]).encode(x="mean(overall):Q"),
        interval_bars(base, x, "high:Q", stroke=ACCENT),
        base.mark_point(filled=True, size=46, opacity=1, color=ACCENT).encode(x="mean:Q"),
    )
    plot = beside_names(width, names)
    return layers.properties(width=plot, height=alt.Step(20), title=heading(frame))
