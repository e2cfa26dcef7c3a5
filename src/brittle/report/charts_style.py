"""What the figures share: colours, sizes, axes and panels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd

from brittle.report import palette

ACCENT = "#0072b2"
FRAGILE = "#d55e00"
"""Colour of what a perturbation can flip."""

WIDTH = 960
"""Width of a figure, in pixels; the page's column is a little wider."""

NARROW = 336
"""Width of a drawing for small screens, and of one of several panels, in pixels: a phone's column."""

UNDECIDED = "#868d94"
"""Colour of what an interval leaves open."""

INK, MUTED, RULE, GRID = "#1c2530", "#5b6670", "#87909a", "#e3e7ea"
"""Colours of text, notes, axes and grids; the page turns them with its ground, by these very values."""
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
LABEL_LIMIT = 190
LOG = alt.Scale(type="log", nice=False, padding=8)


def beside_names(width: int, names: Sequence[str]) -> int:
    """Width that is left for the marks of a drawing `width` pixels wide, beside the names of its rows."""
    return max(width - text_width(names) - 14, 120)


def text_width(names: Sequence[str]) -> int:
    """About the width of the longest of `names` as axis labels."""
    return min(7 * max(len(name) for name in names), LABEL_LIMIT) + 10


def heading(frame: pd.DataFrame, by: str = "setting") -> alt.TitleParams:
    """The head of the drawing of one value of `by`."""
    return alt.TitleParams(str(frame[by].iloc[0]), fontSize=12, fontWeight=600, color=INK, anchor="start", offset=8)


def interval_bars(place: Any, x: alt.X, x2: str, **mark: Any) -> Any:
    """Intervals as thin bars."""
    return place.mark_rule(**{"strokeWidth": 2} | mark).encode(x=x, x2=x2)


def colour(frame: pd.DataFrame, legend: Any, field: str = "estimator") -> alt.Color:
    """The colour of each score, by its `place`, under the names that `field` gives them."""
    places = dict(zip(frame[field], frame["place"], strict=True))
    colours = [palette.colour(place) for place in places.values()]
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(places), range=colours), legend=legend)


def shape(frame: pd.DataFrame, legend: Any, field: str = "estimator") -> alt.Shape:
    """The mark of each score, as `colour` gives the colours."""
    places = dict(zip(frame[field], frame["place"], strict=True))
    shapes = [palette.shape(place) for place in places.values()]
    return alt.Shape(f"{field}:N", scale=alt.Scale(domain=list(places), range=shapes), legend=legend)


def by_order(kind: Any, field: str, **header: Any) -> Any:
    """Facets of `field` in the order of the field `order`."""
    return kind(f"{field}:N", sort=alt.EncodingSortField("order", op="min"), title=None, header=panel_header(**header))


def panel_header(**options: Any) -> alt.Header:
    """The head of a panel."""
    return alt.Header(**{"labelFontSize": 12, "labelFontWeight": 600, "labelColor": INK} | options)


def value_axis(values: Iterable[float]) -> alt.Axis:
    """An axis with ticks at `values`."""
    return alt.Axis(values=list(values), grid=True)


def few_ticks() -> alt.Axis:
    """An axis of few ticks, wherever they fall."""
    return alt.Axis(tickCount=4, grid=True)


def names_axis() -> alt.Axis:
    """An axis of names."""
    return alt.Axis(ticks=False, domain=False, labelLimit=LABEL_LIMIT, labelFontSize=12, labelColor=INK, labelPadding=8)


def styled(chart: Any) -> Any:
    """`chart` in the style of the page."""
    colours = {"domainColor": RULE, "tickColor": RULE, "gridColor": GRID, "labelColor": MUTED, "titleColor": MUTED}
    axis: dict[str, Any] = colours | {"grid": False, "labelFontSize": 11, "titleFontSize": 11}
    return chart.configure(  # in one call, as each copies the chart with its data
        font=FONT,
        background="transparent",
        aria=False,
        padding=5,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(**axis, titleFontWeight="normal"),
        legend=alt.LegendConfig(labelFontSize=12, labelColor=INK, labelLimit=220),
    )
