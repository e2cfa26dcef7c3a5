"""Small pictures of findings, for the front page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import altair as alt
import pandas as pd

from brittle.extensions.report.charts import GRID, INK, MUTED
from studies.drawing import logarithmic, svg

WIDTH = 284
"""Width of a picture without its margins."""


class Row(NamedTuple):
    """The dots of a row, what they come to in a few words, and where its tick is."""

    values: Iterable[float]
    text: str
    tick: float = math.nan


class Glance(NamedTuple):
    """A small picture: what is measured, rows by name, what dots and ticks are, and its axis, in the format of D3."""

    measure: str
    rows: Mapping[str, Row]
    key: str
    format: str = "~g"
    log: bool = False

    @property
    def seen(self) -> str:
        """The picture in words."""
        return f"{self.measure} ({self.key}): {'; '.join(f'{name} {row.text}' for name, row in self.rows.items())}"


def small(shown: Glance) -> str:
    """Return the small picture of a finding: below each name a row of dots and a tick."""
    numbers = [(name, number, "dot") for name, row in shown.rows.items() for number in row.values]
    numbers += [(name, row.tick, "tick") for name, row in shown.rows.items()]
    visible = [entry for entry in numbers if math.isfinite(entry[1]) and (entry[1] > 0 or not shown.log)]
    data = pd.DataFrame(visible, columns=["name", "value", "kind"])
    words = pd.DataFrame({"name": [*shown.rows], "text": [row.text for row in shown.rows.values()]})
    x = alt.X("value:Q", title=None, axis=alt.Axis(format=shown.format, tickCount=4, grid=False))
    x = logarithmic(x, data["value"], grid=False) if shown.log else x
    y = alt.Y("name:N", sort=[*shown.rows], axis=None)
    texts, marks = alt.Chart(words).encode(y=y), alt.Chart(data).encode(x=x, y=y)
    start, end = alt.value(0), alt.value(WIDTH)
    chart = alt.layer(
        texts.mark_rule(color=GRID, yOffset=8).encode(x=start, x2=end),
        texts.mark_text(align="left", dy=-8).encode(x=start, text="name:N"),
        texts.mark_text(align="right", dy=-8, fontWeight="bold").encode(x=end, text="text:N"),
        marks.mark_tick(color=MUTED, thickness=2, size=14, yOffset=8).transform_filter("datum.kind == 'tick'"),
        marks.mark_point(color=INK, yOffset=8, size=50).transform_filter("datum.kind == 'dot'"),
    )
    title = alt.TitleParams(shown.measure, subtitle=shown.key)
    return svg(chart.properties(width=WIDTH, height=alt.Step(38), title=title))
