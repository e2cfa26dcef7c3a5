"""The picture of the study: the usual estimate beside the truth, a point for each network and level."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from brittle.extensions.report.charts import MUTED
from studies.drawing import by_data, legend, named, panels, svg
from studies.probabilistic_accuracy.said import results
from studies.study import Tables
from studies.tables import Frame


def pictures(tables: Tables) -> Mapping[str, str]:
    """Return the pictures as SVG by name."""
    return {"probabilistic_accuracy": svg(drawing(results(tables)))}


def drawing(frame: Frame) -> alt.FacetChart:
    """No flip against the middle of the truth's ends, one panel a `rho`."""
    truth, panel = (frame["truth_low"] + frame["truth_high"]) / 2, [f"rho {rho:g}" for rho in frame["rho"]]
    columns = named(frame.assign(truth=truth, panel=panel))[["panel", "dataset", "level", "truth", "usual"]]
    levels = [*dict.fromkeys(columns["level"])]
    share, axis = alt.Scale(domain=(0, 1)), alt.Axis(format="%")
    noise = alt.Size("level:O", sort=levels, scale=alt.Scale(range=[12, 90]), legend=legend(levels, "noise"))
    points = alt.Chart(columns).mark_point(filled=False).encode(
        x=alt.X("truth:Q", scale=share, axis=axis, title="right and surely robust"),
        y=alt.Y("usual:Q", scale=share, axis=axis, title="right and no flip in the copies"),
        color=by_data(columns), size=noise,
    )  # fmt: skip
    diagonal = alt.Chart(columns).mark_line(color=MUTED, strokeDash=[4, 3]).encode(x="truth:Q", y="truth:Q")
    return panels(alt.layer(diagonal, points, data=columns), "panel", None, 320, 200)
