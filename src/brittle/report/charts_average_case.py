"""The figures of the average case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from brittle.report.charts_style import (
    ACCENT,
    COLOURS,
    GAP,
    LOG,
    MUTED,
    SHAPES,
    WIDTH,
    by_order,
    by_setting,
    colour,
    domain_of,
    few_ticks,
    names_axis,
    panel_header,
    panel_width,
    text_width,
    value_axis,
)

MAX_COLUMNS = 5
"""Panels beside each other where there is one for every score."""


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


def agreement_chart(frame: pd.DataFrame) -> Any:
    """Error and rank correlation of every estimator against its cost; the dashed line is the error of the reference."""
    aligned = {"grid": True, "minExtent": 34, "maxExtent": 34}
    error_axis = alt.Axis(values=_ticks([*frame["mae"], *frame["floor"]], (1, 3)), format="~g", **aligned)
    error = alt.Y("mae:Q", title="mean absolute error", scale=LOG, axis=error_axis)
    tau = alt.Y("tau:Q", title="Kendall's tau", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5, **aligned))
    floor = alt.Chart().mark_rule(stroke=MUTED, strokeDash=[4, 3]).encode(y="min(floor):Q")
    above = _against_cost(frame.query("mae > 0"), error, panel_header(), floor)
    below = _against_cost(frame.dropna(subset=["tau"]), tau, alt.Header(labels=False))
    return alt.vconcat(above, below, spacing=20)


def margins_chart(frame: pd.DataFrame) -> Any:
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


def _against_cost(frame: pd.DataFrame, y: alt.Y, header: alt.Header, *under: Any) -> Any:
    names = len(set(frame["estimator"]))
    legend = alt.Legend(title=None, orient="top", columns=min(names, 8), symbolSize=60, columnPadding=18)
    axis = alt.Axis(values=_ticks(frame["cost"].tolist(), (1,)), grid=True, format="~s")
    place = alt.Chart().encode(x=alt.X("cost:Q", title="passes per point", scale=LOG, axis=axis), y=y)
    lines = place.mark_line(strokeWidth=1.5).encode(color=colour(frame, legend))
    marks = place.mark_point(filled=True, size=44, opacity=1)
    marks = marks.encode(color=colour(frame, legend), shape=_shape(frame, legend))
    holes = place.mark_circle(size=12, opacity=1, color="white").transform_filter("datum.shares_draws")
    layers = alt.layer(*under, lines, marks, holes, data=frame)
    width = panel_width(frame["setting"].tolist(), 50)
    return layers.properties(width=width, height=min(240, max(190, width))).facet(
        column=by_setting(header), spacing=GAP
    )


def _ticks(values: Sequence[float], digits: Sequence[int]) -> list[float]:
    """The numbers of one of `digits` and zeros within the range of `values`, for a logarithmic axis."""
    found = (digit * 10.0**power for power in range(-12, 10) for digit in digits)
    return [tick for tick in found if min(values, default=1.0) <= tick <= max(values, default=1.0)]


def _mark(shares: Sequence[float]) -> float:
    """The largest round share that one of `shares` reaches."""
    return max((share for share in (0.5, 0.2, 0.1, 0.05) if share <= max(shares)), default=0.02)


def _shape(frame: pd.DataFrame, legend: Any) -> alt.Shape:
    known = list(COLOURS)
    domain = domain_of(frame, "estimator")
    shapes = [SHAPES[(known.index(score) if score in known else 0) % len(SHAPES)] for score in domain.values()]
    return alt.Shape("estimator:N", scale=alt.Scale(domain=list(domain), range=shapes), legend=legend)
