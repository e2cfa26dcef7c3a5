"""Rules of the findings, and their shared words."""

from __future__ import annotations

from studies.expected_change.summary import PAPERS
from studies.study import Tables
from studies.tables import Frame, frames_of

TOLERANCE = 0.8
"""The Laplacian's prediction holds where its sign is right at this share of the points, its rank correlation with the
change is at least this, and the median of true by predicted change lies between this and one by it; as in the library's
report."""

IMAGES = 100
"""Images below which a mean over them says nothing for or against a paper."""

Frames = dict[str, Frame]


def read(tables: Tables) -> Frames:
    """Return the results by name, without JPEG compression of images that are JPEG copies."""
    frames = frames_of(tables)
    twice = (frames["corrupted"]["dataset"] == "cifar10") & (frames["corrupted"]["kind"] == "jpeg_compression")
    return frames | {"corrupted": frames["corrupted"][~twice]}


def papers(frame: Frame) -> Frame:
    """Return the rows at the paper's lengths."""
    return frame[frame["radius"].isin(PAPERS)]


def holds(changes: Frame) -> Frame:
    """Return whether the Laplacian's prediction holds in each row; with too few sure changes it does not."""
    sized = changes["ratio"].between(TOLERANCE, 1 / TOLERANCE)
    return sized & (changes["sign"] >= TOLERANCE) & (changes["order"] >= TOLERANCE)
