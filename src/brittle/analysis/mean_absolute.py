"""How large is a score on average, regardless of its sign?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brittle.analysis.change_columns import LAPLACIAN, laplacian_column
from brittle.analysis.location import skewed_mean
from brittle.errors import ParameterError
from brittle.store.columns import Column, Scored


@dataclass(frozen=True)
class MeanAbsolute:
    """Mean of `|value|` of one score over the points.

    Attributes:
        label: the score with its parameters.
        points: points with a value.
        dropped: points left out because they have none.
        mean: of the absolute values; NaN without points.
        low: lower end of its interval, at least 0.
        high: upper end; infinite where nothing can be said.
        confidence: of the interval.
    """

    label: str
    points: int
    dropped: int
    mean: float
    low: float
    high: float
    confidence: float


def mean_absolute(table: Scored, column: Column | str = LAPLACIAN) -> MeanAbsolute:
    """Mean of `|value|` over the points, `(1 / N) sum_i |L(x_i)|` for the Laplacian: how rough a model is.

    The interval is that of `skewed_mean` (Hall's, with the skewness of such heavy tails taken out), cut at 0.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, section 3.1.3.

    Args:
        table: a run.
        column: the column, or its label, or the name of a score: the first of its columns that has values.

    Raises:
        ParameterError: the run has no such score, or a value is infinite, which leaves no mean.
    """
    chosen = column if isinstance(column, Column) else _named(table.columns, column)
    values = np.abs(chosen.value.to_numpy(dtype=np.float64))
    if np.isinf(values).any():
        count = int(np.isinf(values).sum())
        raise ParameterError(f"{chosen.label} is infinite at {count} points, so it has no mean")
    known, confidence = values[~np.isnan(values)], table.record.confidence
    mean, low, high = skewed_mean(known, confidence)
    return MeanAbsolute(chosen.label, known.size, values.size - known.size, mean, max(low, 0.0), high, confidence)


def _named(found: Sequence[Column], name: str) -> Column:
    """The column of that label, else the one of that score that speaks for the run."""
    same = [column for column in found if name in (column.label, column.score)]
    if not same:
        raise ParameterError(f"this run has no {name}; score the points by it first")
    named = next((column for column in same if column.label == name), None)
    valued = (column for column in same if column.value.notna().any())
    return named or (laplacian_column(same) if name == LAPLACIAN else None) or next(valued, same[0])
