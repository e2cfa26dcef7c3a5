"""The figures: Altair charts, and SVG text drawn from them when the page is written.

Every figure is a function from a frame to a chart, so that the same specification can be drawn as an image here or be
shown by a live Vega-Lite elsewhere. No name out of the data enters an expression of the specification.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from brittle.report.charts_average_case import agreement_chart, classes_chart, distribution_chart, margins_chart
from brittle.report.charts_comparison import difference_chart, series_chart, spread_chart
from brittle.report.charts_expected_change import change_chart, means_chart, shares_chart
from brittle.report.charts_style import COLOURS, OTHER, styled
from brittle.report.charts_worst_case import detection_chart, nearest_chart, stand_in_chart
from brittle.report.svg import inert

__all__ = ["AVERAGE_CASE", "COLOURS", "EXPECTED_CHANGE", "FIGURES", "OTHER", "OTHER_RUNS", "WORST_CASE", "draw"]

AVERAGE_CASE: Mapping[str, Callable[[pd.DataFrame], Any]] = {
    "distribution": distribution_chart,
    "classes": classes_chart,
    "agreement": agreement_chart,
    "margins": margins_chart,
}
"""The figure of each section of the summary that has one."""

WORST_CASE: Mapping[str, Callable[[pd.DataFrame], Any]] = {
    "nearest": nearest_chart,
    "stand_in": stand_in_chart,
    "detection": detection_chart,
}
"""The figures of the worst-case chapter, once for every norm."""

EXPECTED_CHANGE: Mapping[str, Callable[[pd.DataFrame], Any]] = {
    "change": change_chart,
    "shares": shares_chart,
    "means": means_chart,
}
"""The figures of the expected change."""

OTHER_RUNS: Mapping[str, Callable[[pd.DataFrame], Any]] = {
    "difference": difference_chart,
    "spread": spread_chart,
    "series": series_chart,
}
"""The figures of other runs, each once for every run or score."""

FIGURES = {**AVERAGE_CASE, **WORST_CASE, **EXPECTED_CHANGE, **OTHER_RUNS}


def draw(name: str, frame: pd.DataFrame, identity: str | None = None) -> str:
    """The figure `name` of `frame` as SVG text that holds shapes and text and nothing else; empty without data.

    Args:
        name: one of `FIGURES`.
        frame: what it draws.
        identity: begins the identifiers inside the drawing; the name unless a page holds several of one name.
    """
    if frame.empty:
        return ""
    chart = FIGURES[name](frame)
    sink = io.StringIO()
    styled(chart).save(sink, format="svg")
    return inert(sink.getvalue(), identity or name)
