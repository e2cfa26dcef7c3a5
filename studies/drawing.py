"""Charts as SVG."""

from __future__ import annotations

import altair as alt
import vl_convert

PADDING = 20
"""Pixels around a chart, for fonts that are wider than the one that its words were measured with."""


def svg(chart: alt.TopLevelMixin) -> str:
    """A chart as SVG, with room for its words."""
    return vl_convert.vegalite_to_svg({**chart.to_dict(), "padding": PADDING})
