"""Is the model more robust for some classes than for others?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import pandas as pd
from scipy.stats import kruskal

from brittle.analysis.columns import typical
from brittle.analysis.mean_interval import mean_interval
from brittle.store.columns import Column, Scored, storable

MIN_POINTS = 5
"""Points a class needs to take part in the test: below, the test's chi-squared law is no longer close."""


@dataclass(frozen=True, eq=False)
class ClassBias:
    """Robustness by class.

    Attributes:
        column: the column the robustness was read from.
        by: whether a point belongs to its true class (`label`) or, without labels, to the class `predicted`.
        classes: one row per class, the least robust first: `class`, `name`, `points`, `mean`, `low`, `high` (interval
            of the mean of p_robust), `median`.
        spread: largest less smallest class mean; NaN with fewer than two classes.
        p_value: of the Kruskal-Wallis test that p_robust has one distribution in all classes of at least `MIN_POINTS`
            points; NaN where fewer than two such classes exist.
        tested: number of classes in the test.
        confidence: of the intervals, each for its class alone.
    """

    column: Column
    by: Literal["label", "predicted"]
    classes: pd.DataFrame
    spread: float
    p_value: float
    tested: int
    confidence: float


def class_bias(table: Scored, column: Column | None = None) -> ClassBias | None:
    """Robustness by class, with intervals and a test of the differences.

    References:
        Fairness through robustness: investigating robustness disparity in deep learning, Vedant Nanda et al., 2021.

    Args:
        table: a run.
        column: the probability column to read; by default the one that speaks for the run.

    Returns:
        The result, or None where no point has a robustness and a class.
    """
    column = column or typical(table.columns)
    if column is None:
        return None
    confidence = table.record.confidence
    by, classes = class_of(table)
    groups = {int(cast(float, number)): group for number, group in column.p_robust.dropna().groupby(classes)}
    if not groups:
        return None
    rows = [
        {"class": number, "name": class_name(table, number), "points": len(group)}
        | mean_interval(group, confidence)._asdict()
        | {"median": group.median()}
        for number, group in groups.items()
    ]
    frame = pd.DataFrame(rows).sort_values(["mean", "class"], ignore_index=True)
    spread = frame["mean"].iloc[-1] - frame["mean"].iloc[0] if len(frame) > 1 else np.nan
    samples = [group.to_numpy() for group in groups.values() if len(group) >= MIN_POINTS]
    return ClassBias(column, by, frame, float(spread), _p_value(samples), len(samples), confidence)


def class_of(table: Scored) -> tuple[Literal["label", "predicted"], pd.Series]:
    """The class of each point: its label where any point has one, else the prediction."""
    points = table.points.select(["point", "label", "predicted"]).to_pandas().set_index("point")
    by = "label" if points["label"].notna().any() else "predicted"
    return by, points[by]


def class_name(table: Scored, number: int) -> str:
    """The name of class `number`, or `class 3` where the data name none."""
    names = table.record.data.class_names or ()
    return storable(names[number]) if 0 <= number < len(names) else f"class {number}"


def _p_value(samples: list[np.ndarray]) -> float:
    if len(samples) < 2:
        return float("nan")
    if np.ptp(np.concatenate(samples)) == 0.0:
        return 1.0
    return float(kruskal(*samples).pvalue)
