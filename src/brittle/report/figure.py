"""A figure: an Altair chart of a frame, drawn as SVG text when the page is written.

A figure's chart is a function from a frame to a specification, so that the same one can be drawn as an image here or
be shown by a live Vega-Lite elsewhere. No name out of the data enters an expression of the specification.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from brittle.report.charts_style import styled
from brittle.report.svg import inert


@dataclass(frozen=True, eq=False)
class Figure:
    """What a figure draws: the function that makes its Altair chart, and the frame that this reads."""

    chart: Callable[[pd.DataFrame], Any]
    frame: pd.DataFrame


def draw(figure: Figure, identity: str) -> str:
    """`figure` as SVG text that holds shapes and text and nothing else; empty without data.

    Args:
        figure: what to draw.
        identity: begins the identifiers inside the drawing; another one for every figure of a page.
    """
    if figure.frame.empty:
        return ""
    sink = io.StringIO()
    styled(figure.chart(figure.frame)).save(sink, format="svg")
    return inert(sink.getvalue(), identity)
