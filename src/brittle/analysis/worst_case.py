"""Which scores tell the points that a small perturbation can flip, and how well?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.columns import largest_budgets, margin_columns, safer, typical
from brittle.analysis.detection import check_epsilon, detection
from brittle.analysis.margin_consistency import margin_consistency
from brittle.analysis.robust_accuracy import direct_robust_accuracy
from brittle.estimate import Status
from brittle.norms import DISTANCES, check_norm
from brittle.store.columns import Column, Row, Scored
from brittle.text import named_interval

_FIELDS = (
    "norm", "epsilon", "score", "title", "points", "dropped", "not_found", "masked", "positives",
    "tau", "tau_low", "tau_high", "auroc", "auroc_low", "auroc_high", "aupr", "aupr_low", "aupr_high",
    "fpr95", "fpr95_low", "fpr95_high", "accuracy", "robust_accuracy", "robust_low", "robust_high", "reason",
)  # fmt: skip


def worst_case_table(table: Scored, epsilon: float, norm: str | None = None) -> pd.DataFrame:
    """The table of the paper: how every score orders the points by input margin, and finds those within `epsilon`.

    Of probability scores, the column with the most draws at each noise setting takes part. Each row is over the points
    that have that score and a margin.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 3.2, Table 1, https://arxiv.org/abs/2406.18451

    Args:
        table: a run.
        epsilon: perturbation size, in the unit of the input margin.
        norm: of the input margin, `l2`, `linf`, `l1` or `l0`; by default that of the run's first.

    Returns:
        One row per score, the most consistent first: `norm` and `epsilon`; `score` (its label), `title`; `points`,
        `dropped` (without the score or a margin), `not_found` and `masked` (points whose margin has that status),
        `positives` (points within epsilon); `tau`, `auroc`, `aupr`, `fpr95`, each with its interval; `accuracy` and
        `robust_accuracy` of the points with a label, with its interval; `reason` why nothing is detected. Empty without
        input margins in that norm.

    Raises:
        ParameterError: an unknown norm, or a negative epsilon.
    """
    check_epsilon(epsilon)
    if norm is not None:
        check_norm(norm, DISTANCES)
    margin = next((one for one in margin_columns(table) if norm in (None, one.parameters.get("norm"))), None)
    if margin is None:
        return pd.DataFrame(columns=_FIELDS)
    correct = np.asarray(table.points["correct"].to_pylist(), dtype=np.float64)
    most = largest_budgets(table.columns)
    rows = [
        _row(margin, column, values, correct, epsilon, table.record.confidence)
        for column in table.columns
        if not column.is_probability or column in most
        if (values := safer(column)) is not None and values.notna().any()
    ]
    frame = pd.DataFrame(rows, columns=_FIELDS)
    return frame.sort_values("tau", ascending=False, kind="stable", ignore_index=True)


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
    spoken = column if column is not None else typical(table.columns)
    rows = []
    for one in scores if spoken is not None else ():
        assert spoken is not None
        oriented = safer(one)
        values = one.value if oriented is None else oriented
        found = margin_consistency(spoken.p_robust, values, table.record.confidence)
        rows.append((one.label, one.score, one.title, found.points, found.tau, found.low, found.high))
    return pd.DataFrame(rows, columns=["label", "score", "title", "points", "tau", "low", "high"])


def _row(
    margin: Column, column: Column, values: pd.Series, correct: NDArray[np.float64], epsilon: float, confidence: float
) -> Row:
    margins, scores = margin.value.to_numpy(), values.to_numpy()
    order = margin_consistency(margins, scores, confidence)
    found = detection(margins, scores, epsilon, confidence)
    known = ~np.isnan(margins) & ~np.isnan(scores)
    robust = direct_robust_accuracy(margins[known], correct[known], epsilon, confidence)
    statuses = margin.status[known].tolist()
    return {
        "norm": margin.parameters.get("norm"),
        "epsilon": float(epsilon),
        "score": column.label,
        "title": column.title,
        "points": found.points,
        "dropped": found.dropped,
        "not_found": statuses.count(Status.NOT_FOUND.slug),
        "masked": statuses.count(Status.MASKED.slug),
        "positives": found.positives,
        **named_interval("tau", order.tau, order.low, order.high),
        **named_interval("auroc", found.auroc, found.auroc_low, found.auroc_high),
        **named_interval("aupr", found.aupr, found.aupr_low, found.aupr_high),
        **named_interval("fpr95", found.fpr_at_95_tpr, found.fpr_low, found.fpr_high),
        "accuracy": robust.accuracy,
        "robust_accuracy": robust.robust_accuracy,
        "robust_low": robust.low,
        "robust_high": robust.high,
        "reason": found.reason,
    }
