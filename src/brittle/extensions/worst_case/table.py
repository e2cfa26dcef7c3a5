"""Which scores tell the points that a small perturbation can flip, and how well?"""

from __future__ import annotations

import pandas as pd

from brittle.analysis.columns import largest_budgets, margin_columns, safer
from brittle.analysis.detection import detection
from brittle.estimate import DISTANCES, check_norm
from brittle.extensions.worst_case.margin_consistency import margin_consistency
from brittle.store.columns import Column, Row
from brittle.store.table import Table
from brittle.text import check_epsilon, named_interval

_FIELDS = (
    "norm", "score", "points", "positives", "tau", "tau_low", "tau_high", "auroc", "auroc_low", "auroc_high",
    "aupr", "aupr_low", "aupr_high", "fpr95", "fpr95_low", "fpr95_high", "reason",
)  # fmt: skip


def worst_case_table(table: Table, epsilon: float, norm: str | None = None) -> pd.DataFrame:
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
        One row per score, the most consistent first: `norm`; `score` (its label); `points` with that score and a
        margin, `positives` (those within epsilon); `tau`, `auroc`, `aupr`, `fpr95`, each with its interval; `reason`
        why nothing is detected. Empty without input margins in that norm.

    Raises:
        ParameterError: an unknown norm, or a negative epsilon.
    """
    check_epsilon(epsilon)
    if norm is not None:
        check_norm(norm, DISTANCES)
    margin = next((one for one in margin_columns(table) if norm in (None, one.parameters.get("norm"))), None)
    if margin is None:
        return pd.DataFrame(columns=_FIELDS)
    most = largest_budgets(table.columns)
    rows = [
        _row(margin, column, values, epsilon, table.record.confidence)
        for column in table.columns
        if not column.is_probability or column in most
        if (values := safer(column)) is not None and values.notna().any()
    ]
    frame = pd.DataFrame(rows, columns=_FIELDS)
    return frame.sort_values("tau", ascending=False, kind="stable", ignore_index=True)


def _row(margin: Column, column: Column, values: pd.Series, epsilon: float, confidence: float) -> Row:
    margins, scores = margin.value.to_numpy(), values.to_numpy()
    order = margin_consistency(margins, scores, confidence)
    found = detection(margins, scores, epsilon, confidence)
    return {
        "norm": margin.parameters.get("norm"),
        "score": column.label,
        "points": found.points,
        "positives": found.positives,
        **named_interval("tau", order.value, order.low, order.high),
        **named_interval("auroc", found.auroc, found.auroc_low, found.auroc_high),
        **named_interval("aupr", found.aupr, found.aupr_low, found.aupr_high),
        **named_interval("fpr95", found.fpr_at_95_tpr, found.fpr_low, found.fpr_high),
        "reason": found.reason,
    }
