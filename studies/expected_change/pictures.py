"""The pictures of the study: how far the Laplacian's prediction holds, and what corruption does to its size."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from studies.drawing import svg
from studies.expected_change.rules import read
from studies.markdown import data_name
from studies.study import Tables
from studies.tables import Frame


def pictures(tables: Tables) -> Mapping[str, str]:
    """SVG by name."""
    frames = read(tables)
    drawn = {"expected_change": ratios(frames["changes"]), "expected_change_corrupted": corrupted(frames["corrupted"])}
    return {name: svg(one) for name, one in drawn.items()}


def ratios(changes: Frame) -> alt.FacetChart:
    """True by predicted change against the length of the noise, a line a network, one panel for each kind."""
    columns = changes[["network", "group", "radius", "ratio"]].dropna()
    columns = columns.assign(equal=1.0)
    lines = (
        alt.Chart(columns)
        .mark_line(point=True, opacity=0.7)
        .encode(
            x=alt.X("radius:Q", scale=alt.Scale(type="log", nice=False), title="length of the noise"),
            y=alt.Y("ratio:Q", scale=alt.Scale(type="symlog"), title="true by predicted change (median)"),
            color=alt.Color("group:N", scale=alt.Scale(scheme="category10"), legend=None),
            detail="network:N",
        )
    )
    limit = alt.Chart(columns).mark_rule(color="gray", strokeDash=[3, 3]).encode(y="equal:Q")
    both = alt.layer(lines, limit, data=columns).properties(width=280, height=230)
    return both.facet(column=alt.Column("group:N", title=None))


def corrupted(frame: Frame) -> alt.HConcatChart:
    """The size of the Laplacian on corrupted images by that on clean ones: a mark a network and severity.

    Each data set has a panel, as its kinds are its own.
    """
    columns = frame.assign(ratio=frame["corrupted"] / frame["clean"], one=1.0)
    columns = columns[columns["ratio"] > 0][["dataset", "kind", "severity", "ratio", "one"]]
    panels = [of_dataset(own, data_name(str(dataset))) for dataset, own in columns.groupby("dataset")]
    return alt.hconcat(*panels)


def of_dataset(columns: Frame, title: str) -> alt.LayerChart | alt.FacetChart:
    """The panel of one data set."""
    marks = (
        alt.Chart(columns)
        .mark_point(filled=True, opacity=0.6)
        .encode(
            x=alt.X(
                "ratio:Q",
                scale=alt.Scale(type="log"),
                title="size of the Laplacian, corrupted by clean",
                axis=alt.Axis(format="~g", tickCount=5, labelOverlap=True),
            ),
            y=alt.Y("kind:N", sort=[*dict.fromkeys(columns["kind"])], title=None),
            yOffset="severity:O",
            color=alt.Color("severity:O", scale=alt.Scale(scheme="viridis"), title="severity"),
        )
    )
    rule = alt.Chart(columns).mark_rule(color="gray", strokeDash=[3, 3]).encode(x="one:Q")
    return alt.layer(marks, rule).properties(title=title, width=220, height=alt.Step(8))
