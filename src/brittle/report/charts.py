"""The figures: Altair charts, and SVG text drawn from them when the page is written.

Every figure is a function from a frame to a chart, so that the same specification can be drawn as an image here or be
shown by a live Vega-Lite elsewhere. No name out of the data enters an expression of the specification.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pandas as pd

COLOURS = {
    "monte_carlo": "#1c2530",
    "moments": "#0072b2",
    "mmse": "#d55e00",
    "mmse_mvs": "#e69f00",
    "mmse_margin": "#cc79a7",
    "taylor": "#009e73",
    "taylor_mvs": "#7cc6ae",
    "softmax": "#8a94a0",
    "logit_margin": "#56b4e9",
    "first_order_margin": "#7a6fb0",
}
"""One colour per score on the whole page, after the palette of Okabe and Ito, safe for colour-blind readers."""

ACCENT = "#0072b2"
OTHER = "#b0a56a"
"""Colour of a score that is not in `COLOURS`."""

WIDTH = 960
"""Width of a figure, in pixels; the page's column is a little wider."""

_INK, _MUTED, _RULE, _GRID = "#1c2530", "#5b6670", "#c9d0d6", "#eceff1"
_FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
_GAP = 26
_WIDEST = 460
_LABEL_LIMIT = 190
_LOG = alt.Scale(type="log", nice=False, padding=8)
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
_SVG = "http://www.w3.org/2000/svg"
_ELEMENTS = frozenset({"svg", "g", "path", "text", "tspan", "rect", "line", "circle", "defs", "clipPath"})
_ATTRIBUTES = frozenset(
    {
        "class", "clip-path", "cx", "cy", "d", "dominant-baseline", "dx", "dy", "fill", "fill-opacity", "font-family",
        "font-size", "font-style", "font-weight", "height", "id", "opacity", "pointer-events", "r", "rx", "ry",
        "stroke", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
        "stroke-opacity", "stroke-width", "text-anchor", "transform", "viewBox", "width", "x", "x1", "x2", "y", "y1",
        "y2",
    }
)  # fmt: skip


def distribution_chart(frame: pd.DataFrame) -> Any:
    """Histograms of p_robust: one row per estimator, one column per noise level."""
    few = len(set(frame["estimator"])) <= 2
    shares = alt.Axis(orient="right", format="%", values=[0.0, _mark(frame["share"].tolist())], grid=True)
    bars = alt.Chart(frame).mark_bar(binSpacing=1).encode(
        x=alt.X("start:Q", bin="binned", scale=alt.Scale(domain=[0, 1]), title="p_robust", axis=_axis([0, 0.5, 1])),
        x2="end:Q",
        y=alt.Y("share:Q", title=None, axis=shares),
        color=_colour(frame, legend=None),
    )  # fmt: skip
    width = _panel_width(frame["setting"].tolist(), _text_width(frame["estimator"].tolist()) + 36)
    return bars.properties(width=width, height=100 if few else 46).facet(
        row=_by_order(alt.Row, "estimator", labelAngle=0, labelAlign="left", labelFontWeight=400),
        column=_by_setting(),
        spacing={"row": 10, "column": _GAP},
    )


def classes_chart(frame: pd.DataFrame) -> Any:
    """Mean p_robust by class with intervals: one panel per noise level, the classes in the same order."""
    base = alt.Chart().encode(
        y=alt.Y("name:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=_names_axis())
    )
    x = alt.X("low:Q", title="mean p_robust", scale=alt.Scale(zero=False, nice=True), axis=_few_ticks())
    layers = alt.layer(
        alt.Chart().mark_rule(stroke=_MUTED, strokeDash=[3, 3]).encode(x="mean(overall):Q"),
        base.mark_rule(stroke=ACCENT, strokeWidth=5, opacity=0.28).encode(x=x, x2="high:Q"),
        base.mark_point(filled=True, size=46, opacity=1, color=ACCENT).encode(x="mean:Q"),
        data=frame,
    )
    width = _panel_width(frame["setting"].tolist(), _text_width(frame["name"].tolist()))
    return layers.properties(width=width, height=alt.Step(20)).facet(
        column=_by_setting(), spacing=_GAP
    ).resolve_scale(x="independent")  # fmt: skip


def agreement_chart(frame: pd.DataFrame) -> Any:
    """Error and rank correlation of every estimator against its cost; the dashed line is the error of the reference."""
    aligned = {"grid": True, "minExtent": 34, "maxExtent": 34}
    error_axis = alt.Axis(values=_ticks([*frame["mae"], *frame["floor"]], (1, 3)), format="~g", **aligned)
    error = alt.Y("mae:Q", title="mean absolute error", scale=_LOG, axis=error_axis)
    tau = alt.Y("tau:Q", title="Kendall's tau", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5, **aligned))
    floor = alt.Chart().mark_rule(stroke=_MUTED, strokeDash=[4, 3]).encode(y="min(floor):Q")
    above = _against_cost(frame.query("mae > 0"), error, _header(), floor)
    below = _against_cost(frame.dropna(subset=["tau"]), tau, alt.Header(labels=False))
    return alt.vconcat(above, below, spacing=20)


def margins_chart(frame: pd.DataFrame) -> Any:
    """p_robust against each score that knows no noise."""
    dots = alt.Chart(frame).mark_circle(size=16, opacity=0.45).encode(
        x=alt.X("value:Q", title=None, scale=alt.Scale(zero=False), axis=_few_ticks()),
        y=alt.Y("p_robust:Q", title="p_robust", scale=alt.Scale(domain=[0, 1]), axis=_axis([0, 0.5, 1])),
        color=_colour(frame, legend=None, field="title"),
    )  # fmt: skip
    width = _panel_width(frame["title"].tolist(), 50)
    return dots.properties(width=width, height=230).facet(
        column=_by_order(alt.Column, "title"), spacing=_GAP
    ).resolve_scale(x="independent")  # fmt: skip


FIGURES: Mapping[str, Callable[[pd.DataFrame], Any]] = {
    "distribution": distribution_chart,
    "classes": classes_chart,
    "agreement": agreement_chart,
    "margins": margins_chart,
}
"""The figure of each section of the summary that has one."""


def draw(name: str, frame: pd.DataFrame) -> str:
    """The figure `name` of `frame` as SVG text that holds shapes and text and nothing else; empty without data."""
    if frame.empty:
        return ""
    chart = FIGURES[name](frame)
    sink = io.StringIO()
    _styled(chart).save(sink, format="svg")
    return _inert(sink.getvalue(), name)


def _against_cost(frame: pd.DataFrame, y: alt.Y, header: alt.Header, *under: Any) -> Any:
    names = len(set(frame["estimator"]))
    legend = alt.Legend(title=None, orient="top", columns=min(names, 8), symbolSize=60, columnPadding=18)
    axis = alt.Axis(values=_ticks(frame["cost"].tolist(), (1,)), grid=True, format="~s")
    place = alt.Chart().encode(x=alt.X("cost:Q", title="passes per point", scale=_LOG, axis=axis), y=y)
    lines = place.mark_line(strokeWidth=1.5).encode(color=_colour(frame, legend))
    marks = place.mark_point(filled=True, size=44, opacity=1)
    marks = marks.encode(color=_colour(frame, legend), shape=_shape(frame, legend))
    holes = place.mark_circle(size=12, opacity=1, color="white").transform_filter("datum.shares_draws")
    layers = alt.layer(*under, lines, marks, holes, data=frame)
    width = _panel_width(frame["setting"].tolist(), 50)
    return layers.properties(width=width, height=min(240, max(190, width))).facet(
        column=_by_setting(header), spacing=_GAP
    )


def _ticks(values: Sequence[float], digits: Sequence[int]) -> list[float]:
    """The numbers of one of `digits` and zeros within the range of `values`, for a logarithmic axis."""
    found = (digit * 10.0**power for power in range(-12, 10) for digit in digits)
    return [tick for tick in found if min(values, default=1.0) <= tick <= max(values, default=1.0)]


def _mark(shares: Sequence[float]) -> float:
    """The largest round share that one of `shares` reaches."""
    return max((share for share in (0.5, 0.2, 0.1, 0.05) if share <= max(shares)), default=0.02)


def _panel_width(panels: Sequence[str], taken: int) -> int:
    """Width of each panel, one per value of `panels`, where `taken` pixels go to names and axes."""
    count = max(len(set(panels)), 1)
    return min((WIDTH - taken - _GAP * (count - 1)) // count, _WIDEST)


def _text_width(names: Sequence[str]) -> int:
    """About the width of the longest of `names` as axis labels."""
    return min(7 * max(len(name) for name in names), _LABEL_LIMIT) + 10


def _domain(frame: pd.DataFrame, field: str) -> dict[str, str]:
    """The score of each estimator, in the order of the frame."""
    return dict(zip(frame[field], frame["score"], strict=True))


def _colour(frame: pd.DataFrame, legend: Any, field: str = "estimator") -> alt.Color:
    domain = _domain(frame, field)
    colours = [COLOURS.get(score, OTHER) for score in domain.values()]
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(domain), range=colours), legend=legend)


def _shape(frame: pd.DataFrame, legend: Any) -> alt.Shape:
    known = list(COLOURS)
    domain = _domain(frame, "estimator")
    shapes = [_SHAPES[(known.index(score) if score in known else 0) % len(_SHAPES)] for score in domain.values()]
    return alt.Shape("estimator:N", scale=alt.Scale(domain=list(domain), range=shapes), legend=legend)


def _by_setting(header: alt.Header | None = None) -> alt.Column:
    """One panel per noise setting, in the order of the frame."""
    return alt.Column("setting:N", sort=None, title=None, header=header or _header())


def _by_order(kind: Any, field: str, **header: Any) -> Any:
    """Facets of `field` in the order of the field `order`."""
    return kind(f"{field}:N", sort=alt.EncodingSortField("order", op="min"), title=None, header=_header(**header))


def _header(**options: Any) -> alt.Header:
    return alt.Header(**{"labelFontSize": 12, "labelFontWeight": 600, "labelColor": _INK} | options)


def _axis(values: Iterable[float]) -> alt.Axis:
    return alt.Axis(values=list(values), grid=True)


def _few_ticks() -> alt.Axis:
    return alt.Axis(tickCount=4, grid=True)


def _names_axis() -> alt.Axis:
    return alt.Axis(
        ticks=False, domain=False, labelLimit=_LABEL_LIMIT, labelFontSize=12, labelColor=_INK, labelPadding=8
    )


def _styled(chart: Any) -> Any:
    axis = {"domainColor": _RULE, "tickColor": _RULE, "gridColor": _GRID, "labelColor": _MUTED, "titleColor": _MUTED}
    return chart.configure(font=_FONT, background="transparent", aria=False, padding=2).configure_view(
        stroke=None
    ).configure_axis(**axis, grid=False, labelFontSize=11, titleFontSize=11, titleFontWeight="normal").configure_legend(
        labelFontSize=12, labelColor=_INK, labelLimit=220
    )  # fmt: skip


def _inert(svg: str, name: str) -> str:
    """`svg` rebuilt from the elements and attributes that a drawing needs, its identifiers unique to the figure."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(svg)
    found = dict.fromkeys(node.attrib["id"] for node in root.iter() if "id" in node.attrib)
    ids = {identifier: f"{name}-{order}" for order, identifier in enumerate(found)}
    _clean(root, ids)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(node: ElementTree.Element, ids: dict[str, str]) -> None:
    for child in list(node):
        if child.tag.removeprefix(f"{{{_SVG}}}") in _ELEMENTS:
            _clean(child, ids)
        else:
            node.remove(child)
    kept = {key: value for key, value in node.attrib.items() if key in _ATTRIBUTES}
    if "id" in kept:
        kept["id"] = ids[kept["id"]]
    if "clip-path" in kept:
        kept["clip-path"] = f"url(#{ids[kept['clip-path'].removeprefix('url(#').removesuffix(')')]})"
    node.attrib.clear()
    node.attrib.update(kept)
