"""The picture of the study of estimators: error against passes at each level of noise."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from studies.drawing import svg
from studies.estimators.entrants import LIBRARY, OWN, PRINTED
from studies.estimators.read import Results
from studies.study import Tables

SHOWN = {
    (LIBRARY, "monte_carlo"), (LIBRARY, "moments"), (LIBRARY, "shrinkage"), (LIBRARY, "mmse"),
    (PRINTED, "mmse"), (PRINTED, "mmse_mvs"), (LIBRARY, "taylor"), (LIBRARY, "softmax"),
}  # fmt: skip
"""What is drawn, besides what a user adds."""


def pictures(tables: Tables) -> Mapping[str, str]:
    """SVG by name."""
    frame = Results(tables).estimators
    named = [
        (origin, name) in SHOWN or origin == OWN
        for origin, name in zip(frame["origin"], frame["estimator"], strict=True)
    ]
    shown = frame[named].assign(
        estimator=lambda rows: rows["estimator"] + rows["origin"].map({LIBRARY: "", PRINTED: ", as printed", OWN: ""})
    )
    return {"estimators": svg(drawing(shown))}


def drawing(frame: pd.DataFrame) -> alt.FacetChart:
    """Error against passes, one panel a level."""
    columns = frame[["level", "estimator", "passes", "error"]]
    lines = (
        alt.Chart(columns)
        .mark_line(point=True)
        .encode(
            x=alt.X("passes:Q", scale=alt.Scale(type="log"), title="passes per point"),
            y=alt.Y("error:Q", scale=alt.Scale(type="log"), title="mean absolute error of p_robust"),
            color=alt.Color("estimator:N", scale=alt.Scale(scheme="category10"), title=None),
        )
    )
    levels = [*dict.fromkeys(columns["level"])]
    return lines.properties(width=250, height=230).facet(column=alt.Column("level:N", title=None, sort=levels))
