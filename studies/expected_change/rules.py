"""The rules by which findings are judged, and what their words share."""

from __future__ import annotations

import numpy as np

from studies.expected_change.summary import PAPERS
from studies.study import Agreement, Tables
from studies.tables import Frame, frames_of

SOURCE = "Yang et al."

MOST, HALF = 0.8, 0.5
"""Shares of the cases: from the first what a paper says agrees, up to the second it does not."""

TOLERANCE = 0.8
"""The Laplacian's prediction holds where its sign is right at this share of the points, its rank correlation with the
change is at least this, and the median of true by predicted change lies between this and one by it; as in the library's
report."""

Frames = dict[str, Frame]


def read(tables: Tables) -> Frames:
    """The results by name."""
    return frames_of(tables)


def judged_by_share(share: float) -> Agreement:
    """What the share of the cases that are as the paper says comes to."""
    if not np.isfinite(share):
        return Agreement.UNMEASURED
    return Agreement.AGREES if share >= MOST else Agreement.IN_PART if share > HALF else Agreement.DIFFERS


def share_of(cases: Frame) -> float:
    """The share that holds; NaN of none."""
    return float(cases.mean()) if len(cases) else np.nan


def papers(frame: Frame) -> Frame:
    """The rows at the paper's lengths."""
    return frame[frame["radius"].isin(PAPERS)]


def count(frame: Frame) -> int:
    """The networks of a frame."""
    return int(frame["network"].nunique())


def holds(changes: Frame) -> Frame:
    """Whether the Laplacian's prediction holds, for each row; where too few changes are surely not zero it does not."""
    sized = changes["ratio"].between(TOLERANCE, 1 / TOLERANCE)
    return sized & (changes["sign"] >= TOLERANCE) & (changes["order"] >= TOLERANCE)


def reach(changes: Frame) -> Frame:
    """The largest length of each network up to which the prediction holds, or 0."""
    frame = changes.assign(holds=holds(changes))
    return frame.groupby("network", sort=False)[["radius", "holds"]].apply(_reach)


def _reach(own: Frame) -> float:
    """The last length before the first at which it does not hold."""
    own = own.sort_values("radius")
    good = own["holds"].cumprod().astype(bool)
    return float(own["radius"][good].max()) if good.any() else 0.0
