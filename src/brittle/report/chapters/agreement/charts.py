"""Error and rank correlation of the estimators against their cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import (
    LOG,
    MUTED,
    NARROW,
    colour,
    heading,
    shape,
)


def agreement_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Error and rank correlation of every estimator against its cost at one noise level.

    The dashed line is the error of the reference.
    """
    aligned = {"grid": True, "minExtent": 34, "maxExtent": 34}
    error_axis = alt.Axis(values=_ticks([*frame["mae"], *frame["floor"]], (1, 3)), format="~g", **aligned)
    error = alt.Y("mae:Q", title="mean absolute error, lower is better", scale=LOG, axis=error_axis)
    tau = alt.Y(
        "tau:Q",
        title="Kendall's tau, higher is better",
        scale=alt.Scale(zero=False),
        axis=alt.Axis(tickCount=5, **aligned),
    )
    floor = alt.Chart().mark_rule(stroke=MUTED, strokeDash=[4, 3]).encode(y="min(floor):Q")
    above = _against_cost(frame.query("mae > 0"), error, width, floor)
    below = _against_cost(frame.dropna(subset=["tau"]), tau, width)
    return alt.vconcat(above, below, spacing=20, title=heading(frame))


def _against_cost(frame: pd.DataFrame, y: alt.Y, width: int, *under: Any) -> Any:
    legend = alt.Legend(title=None, orient="top", columns=max(width // 160, 1), symbolSize=60, labelLimit=130)
    axis = alt.Axis(values=_ticks(frame["cost"].tolist(), (1,)), grid=True, format="~s")
    place = alt.Chart().encode(x=alt.X("cost:Q", title="passes per point", scale=LOG, axis=axis), y=y)
    lines = place.mark_line(strokeWidth=1.5).encode(color=colour(frame, legend))
    marks = place.mark_point(filled=True, size=44, opacity=1)
    marks = marks.encode(color=colour(frame, legend), shape=shape(frame, legend))
    holes = place.mark_circle(size=12, opacity=1, color="white").transform_filter("datum.shares_draws")
    layers = alt.layer(*under, lines, marks, holes, data=frame)
    return layers.properties(width=min(width - 60, 620), height=210)


def _ticks(values: Sequence[float], digits: Sequence[int]) -> list[float]:
    """The numbers of one of `digits` and zeros within the range of `values`, for a logarithmic axis."""
    found = (digit * 10.0**power for power in range(-12, 10) for digit in digits)
    return [tick for tick in found if min(values, default=1.0) <= tick <= max(values, default=1.0)]
