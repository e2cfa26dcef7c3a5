"""The chapter on the certified majority vote of noisy copies."""

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
from brittle.extensions.worst_case.smoothing import can_certify, representative_count, smoothed_radius

STEPS = 100  # number of radii on the curve


def summarize(contents: Contents) -> dict[str, Any] | None:
    """Summarise the share of points whose vote is certified to a radius; None without counts that can certify."""
    column = representative_count(contents)
    if column is None or not can_certify(contents, column):
        return None
    radius, correct = smoothed_radius(contents, column), contents.points["correct"].to_pylist()
    if radius.isna().all():
        return None
    labelled = any(verdict is not None for verdict in correct)
    sizes = np.linspace(0.0, 1.05 * float(radius.max()) or 1.0, STEPS).tolist()
    description = f"{'correct' if labelled else 'any'} prediction, certified"
    outcomes = correct if labelled else [True] * len(correct)
    curve = direct_robust_accuracies(radius.to_numpy(), outcomes, sizes, contents.confidence)
    rows = [("certified", description, point.epsilon, point.robust_accuracy, point.low, point.high) for point in curve]
    frame = pd.DataFrame(rows, columns=["kind", "of", "epsilon", "share", "low", "high"])
    share = percent(float((radius > 0.0).sum() / radius.notna().sum()))
    summary = f"{share} of the points have such a radius; the largest is {short(radius.max())}."
    return {
        "figure": Figure(nearest_chart, frame, summary),
        "summary": summary,
        "labelled": labelled,
        "confidence": f"{50.0 * (1.0 + contents.confidence):.4g}%",
        "noise": show(str(column.setting)),
    }


CHAPTER = Chapter("vote", "The majority vote of noisy copies", summarize, "methods")
