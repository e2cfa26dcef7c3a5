"""Charts as SVG in the style of the report: legible on a phone, and in the colours that a reader prefers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from brittle.extensions.report.charts import FONT, GRID, INK, MUTED, RULE
from studies.groups import GROUPS
from studies.markdown import DATA, data_name

GROUND = "#ffffff"
DARK = {GROUND: "#14191f", INK: "#e4e8ec", MUTED: "#a6b0b9", GRID: "#29323b"}
"""Colours for the dark, as in the report; all others have a contrast of 3 or more on both grounds."""

COLOURS = ("#0072b2", "#d55e00", "#ca79a8", "#9f525e", "#8f85f2", INK, "#049fc6", "#867605", "#af3b8f", "#0c8645")
"""From the palette of the report, those first that stay the furthest apart for colour-blind readers."""

SHAPES = ("triangle-up", "circle", "square", "cross", "diamond", "triangle-down", "triangle-left", "triangle-right")

TEXT, ROOM = 12, 250
"""Height of text, and width for a legend. A phone shows 358 pixels: text of this height can be read there in pictures
that are up to 420 wide."""

WORDS = {"labelFontSize": TEXT, "titleFontSize": TEXT, "titleFontWeight": "normal", "titleColor": MUTED}
STYLE: dict[str, Any] = {
    "aria": False,
    "background": GROUND,
    "font": FONT,
    "padding": {"left": 14, "right": 10, "top": 8, "bottom": 8},
    "view": {"stroke": None},
    "axis": {**WORDS, "labelColor": MUTED, "titlePadding": 8, "domainColor": RULE, "tickColor": RULE,
             "gridColor": GRID},
    "axisX": {"labelFlush": 15},
    "axisQuantitative": {"tickCount": 5},
    "header": {"labelAnchor": "start", "labelFontSize": TEXT, "labelFontWeight": "bold", "labelColor": INK},
    "legend": {**WORDS, "orient": "bottom", "labelColor": INK, "labelLimit": 300, "symbolBaseFillColor": INK,
               "symbolBaseStrokeColor": INK, "columnPadding": 16, "layout": {"bottom": {"direction": "vertical"}}},
    "title": {"fontSize": TEXT, "color": INK, "subtitleFontSize": TEXT, "subtitleColor": MUTED, "anchor": "start"},
    "text": {"fontSize": TEXT, "color": INK},
    "range": {"category": COLOURS, "symbol": SHAPES},
    "point": {"filled": True, "size": 36, "opacity": 1},
    "tick": {"opacity": 1},
    "line": {"strokeWidth": 1.5},
}  # fmt: skip


def svg(chart: alt.TopLevelMixin) -> str:
    """Return a chart as SVG."""
    drawn = vl_convert.vegalite_to_svg({**chart.to_dict(), "config": STYLE})
    return drawn.replace("><", f"><style>{in_the_dark()}</style><", 1)


def in_the_dark() -> str:
    """Return the rules that turn the colours where a reader prefers the dark."""
    turned = (
        f'[{attribute}="{light}"]{{{attribute}:{dark}}}'
        for light, dark in DARK.items()
        for attribute in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme: dark){{{''.join(turned)}}}"


def legend(names: Sequence[str], title: str | None = None) -> alt.Legend:
    """Return a legend in as many columns as there is room for."""
    widest = max((len(name) for name in names), default=1)
    return alt.Legend(title=title, columns=max(1, min(len(names), ROOM // (7 * widest + 30))))


def coloured(field: str, names: Sequence[str], title: str | None = None) -> dict[str, Any]:
    """Return a scale by colour and by shape, for names other than data sets and training."""
    encoding = {"scale": alt.Scale(domain=names), "legend": legend(names, title)}
    return {"color": alt.Color(f"{field}:N", **encoding), "shape": alt.Shape(f"{field}:N", **encoding)}


def placed(
    names: Iterable[str], order: Sequence[str], marks: Sequence[str], title: str | None = None
) -> dict[str, Any]:
    """Return the marks of names by their places in an order, which are the same in every picture."""
    shown = [name for name in order if name in set(names)]
    marked = [marks[order.index(name) % len(marks)] for name in shown]
    return {"scale": alt.Scale(domain=shown, range=marked), "legend": legend(shown, title)}


def by_data(frame: Any) -> alt.Color:
    """Return the colour of a data set; those that pages have no name for come last."""
    order = [*dict.fromkeys([*DATA.values(), *sorted(frame["dataset"])])]
    return alt.Color("dataset:N", **placed(frame["dataset"], order, COLOURS))


def marked(frame: Any) -> dict[str, Any]:
    """Return data sets by colour, and kinds of training by shape."""
    return {
        "color": by_data(frame),
        "shape": alt.Shape("group:N", **placed(frame["group"], GROUPS, SHAPES, "training")),
    }


def named(frame: Any) -> Any:
    """Return data sets as pages write them, and networks without these, for panels under their names."""
    if "network" in frame:
        pairs = zip(frame["network"], frame["dataset"], strict=True)
        frame = frame.assign(network=[network.replace(f"{dataset}_", "") for network, dataset in pairs])
    return frame.assign(dataset=frame["dataset"].map(data_name))


def by_passes(columns: Any, names: Sequence[str]) -> alt.Chart:
    """Draw the error of estimators by their passes."""
    x = logarithmic(alt.X("passes:Q", title="passes per point"), columns["passes"])
    y = logarithmic(alt.Y("error:Q", title="mean error of p_robust"), columns["error"])
    return alt.Chart(columns).mark_line(point=True).encode(x=x, y=y, **coloured("estimator", names))


def equal(x: str, y: str) -> alt.Chart:
    """Return the line on which two shares are equal."""
    ends = pd.DataFrame({x: [0.0, 1.0], y: [0.0, 1.0]})
    return alt.Chart(ends).mark_line(color=MUTED, strokeDash=[4, 3]).encode(x=f"{x}:Q", y=f"{y}:Q")


def panels(chart: Any, field: str, order: Any, width: int, height: Any, columns: int = 1, **header: Any) -> Any:
    """Return a panel for each value of a field, below one another."""
    facet = alt.Facet(f"{field}:N", title=None, sort=order, header=alt.Header(**header))
    return chart.properties(width=width, height=height).facet(facet=facet, columns=columns)


def logarithmic(place: Any, numbers: Iterable[float], **axis: Any) -> Any:
    """Return a logarithmic axis with a line at each power of ten, and two between where these are few."""
    positive = [number for number in numbers if number > 0] or [1.0]
    low, high = min(positive) / 1.1, max(positive) * 1.1
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    lines = [step * 10.0**power for power in powers for step in ((1,) if high / low > 300 else (1, 2, 5))]
    scale = alt.Scale(type="log", nice=False, domain=[low, high])
    return place.scale(scale).axis(values=[line for line in lines if low <= line <= high], format=",~g", **axis)
