"""What the counts of a run certify of the majority vote of its noisy copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from brittle.extensions.report.chapter import Chapter
from brittle.extensions.report.charts import nearest_chart
from brittle.extensions.report.contents import Contents
from brittle.extensions.report.figure import Figure
from brittle.extensions.report.wording import percent, short, show
from brittle.extensions.worst_case.robust_accuracy import direct_robust_accuracies
from brittle.extensions.worst_case.smoothing import certifies, judge_of, smoothed_radius

STEPS = 100
"""Radii at which the curve is drawn."""


def summarize(contents: Contents) -> dict[str, Any] | None:
    """The share of points whose vote is certified to a radius; None where nothing was counted that certifies."""
    column = judge_of(contents)
    if column is None or not certifies(contents, column):
        return None
    radius, right = smoothed_radius(contents, column), contents.points["correct"].to_pylist()
    if radius.isna().all():
        return None
    labelled = any(one is not None for one in right)
    sizes = np.linspace(0.0, 1.05 * float(radius.max()) or 1.0, STEPS).tolist()
    what = f"{'correct' if labelled else 'any'} prediction, certified"
    known = right if labelled else [True] * len(right)
    curve = direct_robust_accuracies(radius.to_numpy(), known, sizes, contents.confidence)
    rows = [("certified", what, one.epsilon, one.robust_accuracy, one.low, one.high) for one in curve]
    frame = pd.DataFrame(rows, columns=["kind", "of", "epsilon", "share", "low", "high"])
    shown = percent(float((radius > 0.0).sum() / radius.notna().sum()))
    spoken = f"{shown} of the points have such a radius; the largest is {short(radius.max())}."
    return {
        "figure": Figure(nearest_chart, frame, spoken),
        "spoken": spoken,
        "labelled": labelled,
        "confidence": f"{50.0 * (1.0 + contents.confidence):.4g}%",
        "noise": show(str(column.setting)),
    }


CHAPTER = Chapter("vote", "The majority vote of noisy copies", summarize, "methods")
