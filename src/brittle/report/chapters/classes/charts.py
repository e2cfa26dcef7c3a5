"""Mean robustness by class."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import (
    ACCENT,
    GAP,
    MUTED,
    by_setting,
    few_ticks,
    names_axis,
    panel_width,
    text_width,
)


def classes_chart(frame: pd.DataFrame) -> Any:
    """Mean p_robust by class with intervals: one panel per noise level, the classes in the same order."""
    base = alt.Chart().encode(
        y=alt.Y("name:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=names_axis())
    )
    x = alt.X("low:Q", title="mean p_robust", scale=alt.Scale(zero=False, nice=True), axis=few_ticks())
    layers = alt.layer(
        alt.Chart().mark_rule(stroke=MUTED, strokeDash=[3, 3]).encode(x="mean(overall):Q"),
        base.mark_rule(stroke=ACCENT, strokeWidth=5, opacity=0.28).encode(x=x, x2="high:Q"),
        base.mark_point(filled=True, size=46, opacity=1, color=ACCENT).encode(x="mean:Q"),
        data=frame,
    )
    width = panel_width(frame["setting"].tolist(), text_width(frame["name"].tolist()))
    return layers.properties(width=width, height=alt.Step(20)).facet(
        column=by_setting(), spacing=GAP
    ).resolve_scale(x="independent")  # fmt: skip
