"""The pictures of the study: how far the Laplacian's prediction holds, and what corruption does to its size."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from brittle.extensions.report.charts import dashed
from studies.drawing import by_data, logarithmic, named, panels, svg
from studies.expected_change.rules import read
from studies.expected_change.said import NAMED
from studies.study import Tables
from studies.tables import Frame


def pictures(tables: Tables) -> Mapping[str, str]:
    """Return the pictures as SVG by name."""
    frames = read(tables)
    drawn = {"expected_change": ratios(frames["changes"]), "expected_change_corrupted": corrupted(frames["corrupted"])}
    return {name: svg(chart) for name, chart in drawn.items()}


def ratios(changes: Frame) -> alt.FacetChart:
    """Draw true by predicted change against the length of the noise, a line per network, a panel per kind."""
    columns = changes[["network", "dataset", "group", "radius", "ratio"]].dropna()
    columns = named(columns.assign(equal=1.0, line=columns["network"], group=columns["group"].map(NAMED)))
    y = alt.Y("ratio:Q", scale=alt.Scale(type="symlog"), axis=alt.Axis(values=[-100, -10, -1, 0, 1, 10, 100]))
    lines = alt.Chart(columns).mark_line(point=alt.OverlayMarkDef(size=14), strokeWidth=1).encode(
        x=logarithmic(alt.X("radius:Q", title="length of the noise"), columns["radius"]),
        y=y.title("true by predicted change (median)"), color=by_data(columns), detail="line:N",
    )  # fmt: skip
    layers = alt.layer(lines, dashed(alt.Chart(columns), y="equal:Q"), data=columns)
    return panels(layers, "group", None, 330, 230)


def corrupted(frame: Frame) -> alt.VConcatChart:
    """Draw the Laplacian's size on corrupted by that on clean images, a mark per network, the most severe lowest.

    Each data set has a panel, as its kinds are its own.
    """
    columns = named(frame.assign(ratio=frame["corrupted"] / frame["clean"], one=1.0))
    columns = columns[columns["ratio"] > 0][["kind", "dataset", "severity", "ratio", "one"]]
    columns["kind"] = columns["kind"].str.replace("_", " ")
    return alt.vconcat(*(of_dataset(rows, str(dataset), columns) for dataset, rows in columns.groupby("dataset")))


def of_dataset(rows: Frame, title: str, columns: Frame) -> alt.LayerChart | alt.FacetChart:
    """Return the panel of one data set, on the axis of all."""
    x = logarithmic(alt.X("ratio:Q", title="size of the Laplacian, corrupted by clean"), columns["ratio"])
    y = alt.Y("kind:N", sort=[*dict.fromkeys(rows["kind"])], title=None)
    marks = alt.Chart(rows).mark_tick(thickness=1.5, size=7)
    marks = marks.encode(x=x, y=y, yOffset="severity:O", color=by_data(columns))
    panel = alt.layer(marks, dashed(alt.Chart(rows), x="one:Q"))
    return panel.properties(title=title, width=270, height=alt.Step(8))
