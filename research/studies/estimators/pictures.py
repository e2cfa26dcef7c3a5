"""The picture of the study of estimators: error against passes at each level of noise."""

from __future__ import annotations

from collections.abc import Mapping

from studies.drawing import by_passes, panels, svg
from studies.estimators.entrants import LIBRARY, OWN, PRINTED
from studies.estimators.read import Results
from studies.study import Tables

SHOWN = {
    (LIBRARY, "monte_carlo"), (LIBRARY, "moments"), (LIBRARY, "shrinkage"), (LIBRARY, "mmse"),
    (PRINTED, "mmse"), (PRINTED, "mmse_mvs"), (LIBRARY, "taylor"), (LIBRARY, "softmax"),
}  # fmt: skip
"""Estimators in the picture, besides a user's."""


def pictures(tables: Tables) -> Mapping[str, str]:
    """Return the pictures as SVG by name."""
    frame = Results(tables).estimators
    shown = [
        (origin, name) in SHOWN or origin == OWN
        for origin, name in zip(frame["origin"], frame["estimator"], strict=True)
    ]
    columns = frame[shown].assign(
        estimator=lambda rows: rows["estimator"] + rows["origin"].map({LIBRARY: "", PRINTED: ", as printed", OWN: ""}),
        level=frame["level"] + " noise",
    )[["level", "estimator", "passes", "error"]]
    lines = by_passes(columns, [*dict.fromkeys(columns["estimator"])])
    return {"estimators": svg(panels(lines, "level", [*dict.fromkeys(columns["level"])], 330, 170))}
