"""Do the cheap scores put the points in the same order as their robustness?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from brittle.analysis.columns import safer, typical
from brittle.analysis.margin_consistency import margin_consistency
from brittle.store.columns import Column, Scored

_FIELDS = ("label", "score", "title", "points", "tau", "low", "high")


def rank_correlation(table: Scored, scores: Sequence[Column], column: Column | None = None) -> pd.DataFrame:
    """Kendall's tau between p_robust and each of `scores`, oriented so that larger means safer.

    The interval is that of `margin_consistency`, from the jackknife over points.

    Args:
        table: a run.
        scores: the columns to compare; one of no known direction is taken as it is.
        column: the probability column to compare them with; by default the one that speaks for the run.

    Returns:
        One row per column of `scores`: `label`, `score`, `title`, `points`, `tau`, `low`, `high`.
    """
    column = column or typical(table.columns)
    if column is None:
        return pd.DataFrame(columns=_FIELDS)
    return pd.DataFrame([_row(score, column, table.record.confidence) for score in scores], columns=_FIELDS)


def _row(score: Column, column: Column, confidence: float) -> dict[str, object]:
    oriented = safer(score)
    found = margin_consistency(column.p_robust, score.value if oriented is None else oriented, confidence)
    return {
        "label": score.label,
        "score": score.score,
        "title": score.title,
        "points": found.points,
        "tau": found.tau,
        "low": found.low,
        "high": found.high,
    }
