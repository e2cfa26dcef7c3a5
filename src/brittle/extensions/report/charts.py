"""Common parts of the figures: colours and marks, sizes, axes, and a scale for numbers of any sign and size."""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from brittle.store.columns import Column

CLAIMED = (
    "#1c2530", "#0072b2", "#d55e00", "#cc8300", "#ca79a8", "#0c8645", "#6b9f72", "#7b95a3", "#049fc6", "#87569a",
    "#9f525e", "#746382", "#636c5b", "#876240", "#867605", "#af3b8f", "#8d8ccf", "#b9402e", "#d27c67", "#ab8b88",
    "#894cbd",
)  # fmt: skip
"""Colours of the places that the scores of the catalogue name, near the palette of Okabe and Ito, which is safe for
colour-blind readers. All but the first have a contrast of 3 or more on the light and on the dark ground of the page;
the first is that of the text, which the page turns with its ground."""

FREE = ("#9c945a", "#5e8b28", "#8f85f2", "#c08745", "#e65384", "#2ea2a0")
"""Colours for scores that name no place."""

PALETTE = (*CLAIMED, *FREE)

ACCENT, FRAGILE, OPEN = "#0072b2", "#d55e00", "#868d94"  # holds; a perturbation can flip it; an interval leaves it open

INK, MUTED, RULE, GRID = "#1c2530", "#5b6670", "#87909a", "#e3e7ea"
"""Colours of text, notes, axes and grids; the page turns them with its ground, by these very values."""

WIDTH = 960  # width of a figure, in pixels; the page's column is a little wider
NARROW = 336  # width of a drawing for small screens, in pixels: a phone's column
MAX_DOTS = 1200  # points in one scatter plot; of more, a regular selection is drawn

KINDS = {"all": INK, "correct": ACCENT, "certified": "#0c8645"}

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
LABEL_LIMIT = 190

DECADES = 4  # orders of magnitude that a scale of any sign shows on either side of 0

_TICK_LABEL = (
    "datum.value == 0 ? '0' : abs(datum.value) < 1e-3 || abs(datum.value) >= 1e5 ? "
    "replace(format(datum.value, '~e'), '+', '') : format(datum.value, ',~f')"
)


def score_colours(columns: Iterable[Column]) -> dict[str, str]:
    """Return the colour of each score: that of the place it names, else the next that no score of the run names.
    Scores take the free places in their order; the palette begins anew where it ends."""
    place_by_score = {column.score: column.colour for column in columns}
    used_places = {place for place in place_by_score.values() if place is not None}
    order = (*range(len(CLAIMED), len(PALETTE)), *range(len(CLAIMED)))
    free = itertools.chain((place for place in order if place not in used_places), itertools.count(len(PALETTE)))
    places = {score: next(free) if place is None else place for score, place in place_by_score.items()}
    return {score: PALETTE[place % len(PALETTE)] for score, place in places.items()}


def legend(columns: int, **options: Any) -> alt.Legend:
    """Return a legend above the drawing, in so many columns."""
    return alt.Legend(title=None, orient="top", columns=columns, symbolSize=60, symbolOpacity=1, **options)


def interval_dots(place: Any, **axis: Any) -> list[Any]:
    """Thin bars from the field `low` to `high` with dots at `value`."""
    bars = place.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", **axis), x2="high:Q")
    return [bars, place.mark_point(filled=True, size=46, opacity=1).encode(x=alt.X("value:Q", **axis))]


def nearest_chart(frame: pd.DataFrame, width: int = NARROW) -> Any:
    """Return the share of points with a margin larger than epsilon, against epsilon, with intervals."""
    names = dict(zip(frame["of"], frame["kind"], strict=True))
    colours = alt.Scale(domain=list(names), range=[KINDS[kind] for kind in names.values()])
    sizes = alt.Scale(domain=[0.0, max(frame["epsilon"].tolist())], nice=False)
    key = legend(max(width // 300, 1), columnPadding=12, labelLimit=270)
    place = alt.Chart(frame).encode(
        x=alt.X("epsilon:Q", title="distance (epsilon)", scale=sizes, axis=few_ticks(max(width // 110, 3))),
        color=alt.Color("of:N", scale=colours, legend=key),
    )
    title, share = "share of the points, higher is safer", alt.Axis(format="%", grid=True)
    scale = alt.Scale(domain=[0, 1])
    low, value, high = (alt.Y(f"{end}:Q", title=title, scale=scale, axis=share) for end in ("low", "share", "high"))
    band = place.mark_area(opacity=0.14, interpolate="step-after").encode(y=low, y2="high:Q")
    ends = [place.mark_line(strokeWidth=0.75, interpolate="step-after").encode(y=end) for end in (low, high)]
    line = place.mark_line(strokeWidth=2.25, interpolate="step-after").encode(y=value)
    chosen = [dashed(alt.Chart(frame.head(1).filter(items=["chosen"])), x="chosen:Q")] if "chosen" in frame else []
    return alt.layer(*chosen, band, *ends, line).properties(width=width - 64, height=min(260, width - 96))


def dashed(place: Any, **encoding: Any) -> Any:
    return place.mark_rule(stroke=MUTED, strokeDash=[4, 3]).encode(**encoding)


def few_ticks(count: int = 4) -> alt.Axis:
    """Return an axis of few ticks, wherever they fall."""
    return alt.Axis(tickCount=count, grid=True)


def names_axis(limit: int = LABEL_LIMIT) -> alt.Axis:
    return alt.Axis(labelLimit=limit, ticks=False, domain=False, labelFontSize=12, labelColor=INK, labelPadding=8)


def width_beside(width: int, names: Sequence[str]) -> int:
    """Width that is left for the marks of a drawing `width` pixels wide, beside the names of its rows."""
    widest = min(7 * max(len(name) for name in names), LABEL_LIMIT) + 10
    return max(width - widest - 14, 120)


def styled(chart: Any) -> Any:
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


def symlog(values: Iterable[float]) -> tuple[alt.Scale, list[float]]:
    """Return a scale for numbers of any sign that differ by orders of magnitude, and its ticks. It is linear up to
    the tenth of the numbers that are smallest, yet shows at most `DECADES` beyond."""
    numbers = np.array([value for value in values if math.isfinite(value)], dtype=np.float64)
    sizes = np.abs(numbers[numbers != 0.0])
    largest = float(sizes.max(initial=0.0)) or 1.0
    smallest = float(np.quantile(sizes, 0.1)) if sizes.size else largest
    constant = float(np.clip(smallest, largest * 10.0**-DECADES, largest / 10.0))
    low, high = 1.3 * float(numbers.min(initial=0.0)), 1.3 * float(numbers.max(initial=0.0))
    domain = [low, high] if low < high else [-1.0, 1.0]
    last = math.floor(math.log10(largest) + 1e-9)
    powers = [float(f"1e{power}") for power in (last, last - DECADES // 2) if 10.0**power > constant]
    ticks = [0.0, *(tick for power in powers for tick in (-power, power) if domain[0] <= tick <= domain[1])]
    return alt.Scale(type="symlog", constant=constant, domain=domain, nice=False, clamp=True), ticks


def symlog_axis(ticks: list[float], **options: Any) -> alt.Axis:
    return alt.Axis(values=ticks, labelExpr=_TICK_LABEL, grid=True, labelOverlap="greedy", **options)
