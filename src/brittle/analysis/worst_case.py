"""Which scores tell the points that a small perturbation can flip, and how well?"""

from __future__ import annotations

from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.columns import largest_budgets, safer
from brittle.analysis.detection import detection
from brittle.analysis.margin_consistency import margin_consistency
from brittle.analysis.paired import check_epsilon
from brittle.analysis.robust_accuracy import direct_robust_accuracy
from brittle.analysis.text import named_interval
from brittle.estimate import INPUT_MARGIN, Status, short_labels
from brittle.norms import DISTANCES, check_norm
from brittle.store.columns import Column, Row, Scored

_FIELDS = (
    "norm", "epsilon", "score", "title", "points", "dropped", "not_found", "masked", "positives",
    "tau", "tau_low", "tau_high", "auroc", "auroc_low", "auroc_high", "aupr", "aupr_low", "aupr_high",
    "fpr95", "fpr95_low", "fpr95_high", "accuracy", "robust_accuracy", "robust_low", "robust_high", "reason",
)  # fmt: skip


def margin_columns(table: Scored) -> tuple[Column, ...]:
    """The columns of `table` that hold input margins, in the order of its record.

    A value is a distance in the norm that the parameters name, infinite where nothing was found. Those of single labels
    are among them only where there are none of all labels together.
    """
    found = tuple(column for column in table.columns if column.score == INPUT_MARGIN)
    return tuple(column for column in found if not column.setting.of_label) or found


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
    correct = _correct(table)
    confidence = table.record.confidence
    rows = [
        _row(margin, column, values, correct, epsilon, confidence)
        for column in _compared(table)
        if (values := safer(column)) is not None and values.notna().any()
    ]
    frame = pd.DataFrame(rows, columns=_FIELDS)
    return frame.sort_values("tau", ascending=False, kind="stable", ignore_index=True)


def format_worst_case(frame: pd.DataFrame) -> str:
    """The frame of `worst_case_table` as plain text for a terminal."""
    if frame.empty:
        return "No input margins to compare a score with in this run."
    names = short_labels(frame["score"])
    frame = frame.assign(score=[names[label] for label in frame["score"]])
    width = max(5, *(len(label) for label in frame["score"]))
    header = (
        f"  {'score':<{width}} {'points':>7} {'tau':>6} {'AUROC':>6} {'AUPR':>6} {'FPR@95':>6} {'acc':>6} {'rob':>6}"
    )
    reasons = [str(reason) for reason in frame["reason"].dropna().unique()]
    return "\n".join([_title(frame), header, *(_line(row, width) for row in frame.to_dict("records")), *reasons])


def _compared(table: Scored) -> tuple[Column, ...]:
    """The columns to compare: of probabilities those with most draws, and all others."""
    found = table.columns
    most = {column.label for column in largest_budgets(found)}
    return tuple(column for column in found if not column.is_probability or column.label in most)


def _correct(table: Scored) -> NDArray[np.float64]:
    """Whether each point is classified correctly, 1 or 0, `[N]`; NaN without a label."""
    return np.asarray(table.points["correct"].to_pylist(), dtype=np.float64)


def _row(
    margin: Column,
    column: Column,
    values: pd.Series,
    correct: NDArray[np.float64],
    epsilon: float,
    confidence: float,
) -> Row:
    margins, scores = margin.value.to_numpy(), values.to_numpy()
    order = margin_consistency(margins, scores, confidence, column.label)
    found = detection(margins, scores, epsilon, confidence)
    known = ~np.isnan(margins) & ~np.isnan(scores)
    robust = direct_robust_accuracy(margins[known], correct[known], epsilon, confidence)
    statuses = margin.rows["status"].to_numpy(dtype=object)[known]
    return {
        "norm": margin.parameters.get("norm"),
        "epsilon": float(epsilon),
        "score": column.label,
        "title": column.title,
        "points": found.points,
        "dropped": found.dropped,
        "not_found": int(np.sum(statuses == Status.NOT_FOUND.slug)),
        "masked": int(np.sum(statuses == Status.MASKED.slug)),
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


def _title(frame: pd.DataFrame) -> str:
    first = cast(Row, frame.loc[frame["points"].idxmax()].to_dict())
    norm = "an unnamed norm" if first["norm"] is None else first["norm"]
    title = (
        f"{norm}, epsilon {first['epsilon']:.4g}: {first['positives']:,} of {first['points']:,} points are not robust"
    )
    remarks = [
        f"{first[field]:,} {words}"
        for field, words in (("not_found", "with no other prediction found"), ("masked", "with masked gradients"))
        if first[field]
    ]
    return "; ".join([title, *remarks])


def _line(row: Row, width: int) -> str:
    numbers = [f"{'-' if pd.isna(row[key]) else format(row[key], '.3f'):>6}" for key in _SHOWN]
    return " ".join([f"  {row['score']:<{width}}", f"{row['points']:>7,}", *numbers])


_SHOWN = ("tau", "auroc", "aupr", "fpr95", "accuracy", "robust_accuracy")
