"""Is the model more robust for some classes than for others?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import pandas as pd

from brittle.analysis.class_differences import mean_differences
from brittle.analysis.columns import class_name, class_of, typical
from brittle.analysis.mean_interval import mean_interval
from brittle.store.columns import Column, Scored


@dataclass(frozen=True, eq=False)
class ClassBias:
    """Robustness by class.

    Attributes:
        column: the column the robustness was read from.
        by: whether a point belongs to its true class (`label`) or, without labels, to the class `predicted`.
        classes: one row per class, the least robust first: `class`, `name`, `points`, `mean`, `low`, `high` (interval
            of the mean of p_robust), `median`.
        p_value: of the test that p_robust has one mean in all classes, corrected for their number
            (`mean_differences`); NaN with fewer than two classes.
        least: numbers of the classes that may be the least robust: no other one is surely less so, at the level
            `1 - confidence` for all of them together. Every class, where the test finds no difference.
        most: numbers of those that may be the most robust, likewise.
        confidence: of the intervals, each for its class alone, and of the test.
    """

    column: Column
    by: Literal["label", "predicted"]
    classes: pd.DataFrame
    p_value: float
    least: tuple[int, ...]
    most: tuple[int, ...]
    confidence: float

    @property
    def differ(self) -> bool:
        """Whether the classes surely differ; only then is there a least and a most robust one to name."""
        return self.p_value < 1.0 - self.confidence

    @property
    def spread(self) -> float:
        """Largest less smallest class mean; 0 with one class."""
        return float(self.classes["mean"].iloc[-1] - self.classes["mean"].iloc[0])


def class_bias(table: Scored, column: Column | None = None) -> ClassBias | None:
    """Robustness by class, with intervals and a test of the differences.

    Validity: the points of a class are drawn independently. Interval and test are for means of numbers in [0, 1] and
    cover the random error of each, not a bias of the estimator, which may differ from class to class (`group_means`
    corrects it by counts).

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
    numbers = [int(number) for number in frame["class"]]
    found = mean_differences([groups[number].to_numpy() for number in numbers], confidence)
    least, most = (tuple(numbers[place] for place in places) for places in found[1:])
    return ClassBias(column, by, frame, found.p_value, least, most, confidence)
