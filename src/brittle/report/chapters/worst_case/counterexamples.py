"""The most fragile correct predictions, beside what breaks them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from brittle.estimate import parameters_json
from brittle.report.chapters.worst_case.case import MarginCase
from brittle.report.chapters.worst_case.pictures import common_factor, largest_change, magnified
from brittle.report.chapters.worst_case.result import Counterexample, Counterexamples
from brittle.report.thumbnails import embedded
from brittle.report.wording import short, show
from brittle.store.columns import Row

FRAGILE_SHOWN = 12
"""Counter-examples in the gallery."""


def magnification(cases: Sequence[MarginCase]) -> int:
    """How often the differences of all norms are magnified."""
    rows = [(case, row) for case in cases for row in _fragile(case).head(FRAGILE_SHOWN).to_dict("records")]
    return common_factor([_change(case, row) for case, row in rows])


def summarize_counterexamples(case: MarginCase, factor: int) -> Counterexamples:
    """The most fragile correct predictions, with what breaks them, differences magnified by `factor`."""
    found = _fragile(case)
    points = tuple(_counterexample(case, row, factor) for row in found.head(FRAGILE_SHOWN).to_dict("records"))
    return Counterexamples(points, factor, _note(case, points, len(found)))


def _change(case: MarginCase, row: Row) -> float:
    """The largest change of an input value, as a share of the range of the inputs; 0 where it is not known."""
    bounds = case.contents.record.model.bounds
    if case.norm == "linf" and bounds is not None:
        return float(row["distance"]) / (bounds[1] - bounds[0])
    return largest_change(row["image"], row["image_found"], row["difference"])


def _fragile(case: MarginCase) -> pd.DataFrame:
    """The points predicted right, or all without labels, that have a counter-example, the nearest first."""
    points = case.contents.points.select(
        ["point", "row", "name", "predicted", "decided", "correct", "image"]
    ).to_pandas()
    points["distance"] = case.margin.value.to_numpy()
    found = case.contents.counterexamples.to_pandas()
    own = (found["score"] == case.margin.score) & (found["parameters"] == parameters_json(case.margin.parameters))
    found = found.loc[own, ["point", "predicted", "decided", "image", "difference"]].drop_duplicates("point")
    both = points.merge(found, on="point", suffixes=("", "_found"))
    both = both[np.isfinite(both["distance"])]
    if case.labelled:
        both = both[both["correct"].eq(True)]
    return both.sort_values(["distance", "row"], ignore_index=True)


def _counterexample(case: MarginCase, row: Row, factor: int) -> Counterexample:
    images = (row["image"], row["image_found"], magnified(row["difference"], _change(case, row), factor))
    return Counterexample(
        name=show(row["name"], 80) if isinstance(row["name"], str) else f"row {row['row']}",
        predicted=case.contents.answer_text(row["predicted"], row["decided"]),
        found=case.contents.answer_text(row["predicted_found"], row["decided_found"]),
        distance=short(row["distance"], 3),
        images=(embedded(images[0]), embedded(images[1]), embedded(images[2])),
    )


def _note(case: MarginCase, points: tuple[Counterexample, ...], count: int) -> str:
    if not points:
        return "This run holds no counter-example of a prediction that was right."
    which = "correct predictions" if case.labelled else "predictions, as the data carry no labels,"
    drawn = any(any(point.images) for point in points)
    return " ".join(
        part
        for part in (
            f"The {len(points):,} nearest of {count:,} {which} with a counter-example.",
            "" if drawn else "The run holds no images, so the points are named.",
        )
        if part
    )
