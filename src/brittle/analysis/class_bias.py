"""Is the model more robust for some classes than for others?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import pandas as pd

from brittle.analysis.class_differences import Gap, clearest_gap, mean_differences
from brittle.analysis.columns import typical
from brittle.analysis.mean_interval import mean_interval
from brittle.store.columns import Column, Scored, storable


@dataclass(frozen=True, eq=False)
class ClassBias:
    """Robustness by class.

    Attributes:
        column: the column the robustness was read from.
        by: whether a point belongs to its true class (`label`) or, without labels, to the class `predicted`.
        classes: one row per class, the least robust first: `class`, `name`, `points`, `mean`, `low`, `high` (interval
            of the mean of p_robust), `median`.
        spread: largest less smallest class mean; NaN with fewer than two classes.
        p_value: of the test that p_robust has one mean in all classes, corrected for their number
            (`mean_differences`); NaN with fewer than two classes.
        least: numbers of the classes that may be the least robust: no other one is surely less so, at the level
            `1 - confidence` for all of them together. Every class, where the test finds no difference.
        most: numbers of those that may be the most robust, likewise.
        confidence: of the intervals, each for its class alone, and of the test.
        clearest: the two classes that come nearest to being told apart, by their places in `classes`; None with fewer
            than two.
    """

    column: Column
    by: Literal["label", "predicted"]
    classes: pd.DataFrame
    spread: float
    p_value: float
    least: tuple[int, ...]
    most: tuple[int, ...]
    confidence: float
    clearest: Gap | None = None

    @property
    def differ(self) -> bool:
        """Whether the classes surely differ; only then is there a least and a most robust one to name."""
        return self.p_value < 1.0 - self.confidence


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
    spread = frame["mean"].iloc[-1] - frame["mean"].iloc[0] if len(frame) > 1 else np.nan
    values = [groups[number].to_numpy() for number in frame["class"]]
    found = mean_differences(values, confidence)
    least, most = (tuple(int(frame["class"].iloc[place]) for place in places) for places in found[1:])
    clearest = clearest_gap(values, confidence)
    return ClassBias(column, by, frame, float(spread), found.p_value, least, most, confidence, clearest)


def class_of(table: Scored) -> tuple[Literal["label", "predicted"], pd.Series]:
    """The class of each point: its label where any point has one, else the prediction."""
    points = table.points.select(["point", "label", "predicted"]).to_pandas().set_index("point")
    by = "label" if points["label"].notna().any() else "predicted"
    return by, points[by]


def class_name(table: Scored, number: int) -> str:
    """The name of class `number`, or `class 3` where it has none, or one that is a number, as scikit-learn's."""
    names = table.record.data.names
    name = storable(names[number]) if 0 <= number < len(names) else str(number)
    return f"class {name}" if name.removeprefix("-").isdecimal() else name


def answer_text(table: Scored, number: int | None, words: str | None) -> str | None:
    """A label or a prediction: the name of its class, or the words for what is no class; None where there is none."""
    return words and storable(words) if number is None else class_name(table, number)
