"""The picture of the study: the usual estimate beside the truth, a point for each network and level."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from studies.drawing import svg
from studies.probabilistic_accuracy.said import results
from studies.study import Tables
from studies.tables import Frame


def pictures(tables: Tables) -> Mapping[str, str]:
    """SVG by name."""
    return {"probabilistic_accuracy": svg(drawing(results(tables)))}


def drawing(frame: Frame) -> alt.FacetChart:
    """No flip against the middle of the truth's ends, one panel a `rho`."""
    columns = frame.assign(truth=(frame["truth_low"] + frame["truth_high"]) / 2)[["rho", "level", "truth", "usual"]]
    share = alt.Scale(domain=(0, 1))
    points = (
        alt.Chart(columns)
        .mark_point(filled=True, opacity=0.7)
        .encode(
            x=alt.X("truth:Q", scale=share, axis=alt.Axis(format="%"), title="right and surely robust"),
            y=alt.Y("usual:Q", scale=share, axis=alt.Axis(format="%"), title="right and no flip in the copies"),
            color=alt.Color("level:N", scale=alt.Scale(scheme="category10"), title="noise"),
        )
    )
    equal = alt.Chart(columns).mark_line(color="gray", strokeDash=[3, 3]).encode(x="truth:Q", y="truth:Q")
    both = alt.layer(points, equal, data=columns).properties(width=230, height=230)
    return both.facet(column=alt.Column("rho:N", title="probability of keeping the prediction"))
