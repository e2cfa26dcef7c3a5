"""The confident predictions whose probability drops most."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.analysis.expected_change import expected_change_points
from brittle.estimate import Status
from brittle.report.chapters.expected_change.case import ChangeCase
from brittle.report.chapters.expected_change.flips import CONFIDENT
from brittle.report.chapters.expected_change.result import Drop, Drops
from brittle.report.parts import Grid
from brittle.report.thumbnails import embedded
from brittle.report.wording import MISSING, fixed, plural, reach, show, signed
from brittle.store.columns import Row

DROPS_SHOWN, DROPS_LISTED = 12, 20
"""Points in the gallery of the largest drops, and rows in its table."""

_HEAD = ("Row", "Name", "Label", "Predicted", "Probability", "Sampled change", "Predicted change", "Laplacian")


def summarize_drops(case: ChangeCase) -> Drops:
    """The section on the largest drops."""
    found = _ordered(case)
    by = "sampled" if case.chosen is not None else "laplacian"
    points = tuple(_drop(case, row, by) for row in found.head(DROPS_SHOWN).to_dict("records"))
    rows = tuple(_row(case, row) for row in found.head(DROPS_LISTED).to_dict("records"))
    grid = Grid(_HEAD, (True, False, False, False, True, True, True, True), rows)
    return Drops(points, grid, _note(case, points, len(found)))


def _ordered(case: ChangeCase) -> pd.DataFrame:
    """The confident points, or all where no confidence is known, that lose probability, the largest loss first."""
    names = ["point", "row", "name", "label", "predicted", "image"]
    frame = case.contents.points.select(names).to_pandas().set_index("point", drop=False)
    empty = pd.Series(math.nan, index=frame.index)
    curvature = None if case.contents.laplacian is None else case.contents.laplacian.rows
    sampled = None if case.chosen is None else case.contents.changes[case.chosen].rows
    frame["laplacian"] = empty if curvature is None else curvature["value"]
    frame["kink"] = False if curvature is None else curvature["status"] == Status.KINK.slug
    for name, own in (("sampled", "value"), ("low", "low"), ("high", "high")):
        frame[name] = empty if sampled is None else sampled[own]
    frame["predicted_change"] = empty
    if case.chosen is not None and case.contents.laplacian is not None:
        frame["predicted_change"] = expected_change_points(case.contents, case.chosen)["predicted_change"].to_numpy()
    frame["before"] = empty if case.sure is None else case.sure.value
    chosen = frame if case.sure is None else frame[frame["before"] >= CONFIDENT]
    by = "sampled" if sampled is not None else "laplacian"
    falling = chosen[np.isfinite(chosen[by]) & (chosen[by] < 0.0)]
    return falling.sort_values([by, "row"], ignore_index=True)


def _drop(case: ChangeCase, row: Row, by: str) -> Drop:
    before = row["before"]
    return Drop(
        name=show(row["name"], 80) if isinstance(row["name"], str) else f"row {row['row']}",
        image=embedded(row["image"]),
        change=signed(row[by]) if by == "sampled" else f"L {signed(row[by])}",
        before="" if math.isnan(before) else f"from {fixed(before)}",
        predicted=case.contents.class_text(row["predicted"]),
        wrong=bool(pd.notna(row["label"]) and row["label"] != row["predicted"]),
    )


def _row(case: ChangeCase, row: Row) -> tuple[str, ...]:
    return (
        f"{row['row']:,}",
        show(row["name"], 48),
        case.contents.class_text(row["label"]),
        case.contents.class_text(row["predicted"]),
        fixed(row["before"]),
        MISSING if math.isnan(row["sampled"]) else f"{signed(row['sampled'], 3)}\n{reach(row['low'], row['high'], 3)}",
        signed(row["predicted_change"], 3),
        signed(row["laplacian"], 3) + ("\nat a kink" if row["kink"] else ""),
    )


def _note(case: ChangeCase, points: tuple[Drop, ...], count: int) -> str:
    sure = f" made with a probability of at least {CONFIDENT:g}" if case.sure is not None else ""
    by = "sampled mean change" if case.chosen is not None else "Laplacian, as no change was sampled"
    without = " This run has no max_probability, so these are predictions of any confidence."
    unknown = without if case.sure is None else ""
    if not points:
        return f"No prediction{sure} loses probability, by its {by}.{unknown}"
    level = f" at {case.name(case.chosen)}" if case.chosen is not None else ""
    images = "" if any(point.image for point in points) else " The run holds no images, so the points are named."
    return (
        f"The {len(points):,} lowest of {plural(count, 'prediction')}{sure} that lose probability, by {by}{level}."
        f"{unknown}{images}"
    )
