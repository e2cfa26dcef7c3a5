"""A figure: an Altair chart of a frame, drawn as SVG text when the page is written.

A figure's chart is a function from a frame to a specification, so that the same one can be drawn as an image here or
be shown by a live Vega-Lite elsewhere. No name out of the data enters an expression of the specification.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from altair.utils.schemapi import debug_mode

from brittle.report.charts_style import NARROW, WIDTH, styled
from brittle.report.svg import inert

WIDE_ONLY, NARROW_ONLY, NATURAL = "wide-only", "narrow-only", "natural"
"""Classes of drawings: shown on wide screens, on narrow ones, or on all in their own size, to be scrolled."""

FITS = NARROW + 20
"""Width of a drawing that a phone shows whole, in pixels."""

GRAMMAR = "_".join(alt.SCHEMA_VERSION.split(".")[:2])
"""The version of Vega-Lite that Altair writes, as vl-convert calls it."""

_WIDTH = re.compile(r'<svg[^>]* width="(\d+)')


@dataclass(frozen=True, eq=False)
class Figure:
    """What a figure draws: the function that makes its Altair chart, and the frame that this reads.

    Attributes:
        chart: makes the chart of a frame; with `narrow` it takes its `width` in pixels, too.
        frame: what it draws.
        by: a column of the frame, each value of which gets a drawing of its own; they stand beside each other, or below
            on a small screen. Empty for one drawing.
        narrow: whether to draw it twice, for wide screens and for small ones.
    """

    chart: Callable[..., Any]
    frame: pd.DataFrame
    by: str = ""
    narrow: bool = False


def panels(chart: Callable[..., Any], frame: pd.DataFrame, by: str = "setting") -> Figure:
    """A figure of one drawing for each value of the column `by`; the only one fills the page."""
    several = len(set(frame[by])) > 1
    return Figure(chart, frame, by=by if several else "", narrow=not several)


def draw(figure: Figure, identity: str) -> str:
    """`figure` as SVG text that holds shapes and text and nothing else; empty without data.

    The specification is not held against the schema of Vega-Lite, which takes a quarter of the time: tests do that.

    Args:
        figure: what to draw.
        identity: begins the identifiers inside the drawings; another one for every figure of a page.
    """
    if figure.frame.empty:
        return ""
    with debug_mode(False):
        return _drawings(figure, identity)


def _drawings(figure: Figure, identity: str) -> str:
    frame = figure.frame
    if figure.by:
        values = dict.fromkeys(frame[figure.by].tolist())
        parts = [frame.loc[frame[figure.by] == value].reset_index(drop=True) for value in values]
        return "".join(_drawn(figure.chart(part), f"{identity}-{place}") for place, part in enumerate(parts))
    if figure.narrow:
        wide = _drawn(figure.chart(frame, width=WIDTH), f"{identity}-w", WIDE_ONLY)
        return wide + _drawn(figure.chart(frame, width=NARROW), f"{identity}-n", NARROW_ONLY)
    return _drawn(figure.chart(frame), identity)


def _drawn(chart: Any, identity: str, kind: str = "") -> str:
    with alt.data_transformers.enable("default", max_rows=None):
        specification = styled(chart).to_dict(validate=False)
    svg = vl_convert.vegalite_to_svg(specification, vl_version=GRAMMAR)
    width = _WIDTH.search(svg)
    too_wide = width is not None and int(width[1]) > FITS
    return inert(svg, identity, kind or (NATURAL if too_wide else ""))
