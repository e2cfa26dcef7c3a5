"""Comparison of the scores with the distances to the boundary: order of the points, and detection of near ones."""

from __future__ import annotations

import pandas as pd
from numpy.typing import ArrayLike

from brittle.analysis.columns import margin_columns, safer
from brittle.analysis.correlation import Correlation, kendall, paired
from brittle.analysis.detection import detection
from brittle.estimate import CONFIDENCE, DISTANCES, check_norm
from brittle.intervals import check_confidence
from brittle.store.columns import Column, Row
from brittle.store.representative import largest_budgets
from brittle.store.table import Table
from brittle.text import check_epsilon, named_interval

_FIELDS = (
    "norm", "score", "points", "positives", "tau", "tau_low", "tau_high", "auroc", "auroc_low", "auroc_high",
    "aupr", "aupr_low", "aupr_high", "fpr95", "fpr95_low", "fpr95_high", "reason",
)  # fmt: skip


def worst_case_table(table: Table, epsilon: float, norm: str | None = None) -> pd.DataFrame:
    """Compare every score with the input margins, by the order of points and the detection of those within `epsilon`.

    Among probability scores, the column with the most draws at each noise setting takes part. Each row covers the
    points that have that score and a margin.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 3.2, Table 1, https://arxiv.org/abs/2406.18451

    Args:
        table: a run.
        epsilon: perturbation size, in the unit of the input margin.
        norm: norm of the input margin, `l2`, `linf`, `l1` or `l0`; by default that of the first margins of the run.

    Returns:
        One row per score, the most consistent first: `norm`; `score` (its label); `points` with that score and a
        margin, `positives` (points within epsilon); `tau`, `auroc`, `aupr`, `fpr95`, each with its interval; `reason`
        why nothing is detected. Empty without input margins in that norm.

    Raises:
        ParameterError: an unknown norm, or a negative epsilon.
    """
    check_epsilon(epsilon)
    if norm is not None:
        check_norm(norm, DISTANCES)
    margin = next((column for column in margin_columns(table) if norm in (None, column.parameters.get("norm"))), None)
    if margin is None:
        return pd.DataFrame(columns=_FIELDS)
    representatives = largest_budgets(table.columns)
    rows = [
        _row(margin, column, values, epsilon, table.record.confidence)
        for column in table.columns
        if not column.is_probability or column in representatives
        if (values := safer(column)) is not None and values.notna().any()
    ]
    frame = pd.DataFrame(rows, columns=_FIELDS)
    return frame.sort_values("tau", ascending=False, kind="stable", ignore_index=True)


def _row(margin: Column, column: Column, values: pd.Series, epsilon: float, confidence: float) -> Row:
    margins, scores = margin.value.to_numpy(), values.to_numpy()
    order = margin_consistency(margins, scores, confidence)
    detected = detection(margins, scores, epsilon, confidence)
    return {
        "norm": margin.parameters.get("norm"),
        "score": column.label,
        "points": detected.points,
        "positives": detected.positives,
        **named_interval("tau", order.value, order.low, order.high),
        **named_interval("auroc", detected.auroc, detected.auroc_low, detected.auroc_high),
        **named_interval("aupr", detected.aupr, detected.aupr_low, detected.aupr_high),
        **named_interval("fpr95", detected.fpr_at_95_tpr, detected.fpr_low, detected.fpr_high),
        "reason": detected.reason,
    }


def margin_consistency(margin: ArrayLike, score: ArrayLike, confidence: float = CONFIDENCE) -> Correlation:
    r"""Compute Kendall's tau-b between input margins and a score, with an interval over points.

    $$\tau_b = \frac{\sum_{ij} a_{ij} b_{ij}}{\sqrt{\sum_{ij} a_{ij}^2 \sum_{ij} b_{ij}^2}}, \qquad
    a_{ij} = \operatorname{sign}(d_i - d_j), \quad b_{ij} = \operatorname{sign}(s_i - s_j).$$

    The interval is Student's, on the scale of `atanh(tau)`, from the jackknife over points (`correlation.kendall`).
    Below 10 points it is the whole range.

    Validity: the interval covers the sampling of points, drawn independently, to first order in `1 / n` (tests measure
    it from 20 points on); not the error of the margins, which are upper bounds if they come from attacks. Points with
    an infinite margin, where the attacks found nothing, tie as the largest.

    References:
        Detecting brittle decisions for free: leveraging margin consistency in deep robust classifiers, Jonas Ngnawé et
        al., 2024, section 2.2, https://arxiv.org/abs/2406.18451
        A class of statistics with asymptotically normal distribution, Wassily Hoeffding, 1948.
        Jackknifing U-statistics, James N. Arvesen, 1969.

    Args:
        margin: distance to the nearest input with another prediction, `[n]`; may be infinite; NaN or None is left out.
        score: larger where safer, `[n]`; NaN or None is left out.
        confidence: two-sided coverage, such as 0.99.

    Returns:
        `points` compared and `dropped`; `value`, which is 1 for a margin-consistent model and NaN if either is
        constant, with `low` and `high`, -1 and 1 without information.

    Raises:
        ParameterError: the arrays differ in length, or the confidence is not between 0 and 1.

    Example:
        >>> round(margin_consistency([0.1, 0.2, 0.3, float("inf")], [1.0, 3.0, 2.0, 4.0]).value, 3)
        0.667
    """
    check_confidence(confidence)
    (margins, scores), dropped = paired(margin=margin, score=score)
    return kendall(margins, scores, confidence)._replace(dropped=dropped)
