"""How robust are the points of each class on average, from cheap estimates on all and counts on some?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import pandas as pd

from brittle.analysis.columns import MONTE_CARLO, check_column, class_name, largest_budgets, preferred, typical
from brittle.analysis.mean_interval import mean_interval
from brittle.analysis.prediction_powered import powered_mean
from brittle.errors import DataError, ParameterError
from brittle.estimate import Evidence
from brittle.store.columns import Column, Row, Scored
from brittle.text import aligned, named_interval, number, with_interval

By = Literal["label", "predicted"]

ALL = "all points"
"""The name of the one group that is not a class."""

_FIELDS = (
    "class", "name", "points", "counted", "failed", "mean", "mean_low", "mean_high", "weight", "estimated", "alone",
    "alone_low", "alone_high",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """Mean `p_robust` of groups of points.

    Attributes:
        estimates: the column of cheap estimates.
        counts: the column of counts.
        by: what the groups are: `label`, `predicted`, or None for one group of all points.
        groups: one row per group, by class: `class`, `name`; `points` with an estimate, `counted` those of them with a
            count, `failed` those whose counting gave no number; `mean` with its interval `mean_low`, `mean_high`, NaN,
            0 and 1 without a count; `weight` of the estimates in it; `estimated`, the mean of the estimates alone;
            `alone` with `alone_low`, `alone_high`, the mean of the counts alone.
        left_out: points without an estimate or without a class.
        confidence: of each interval, for its group alone.
    """

    estimates: Column
    counts: Column
    by: By | None
    groups: pd.DataFrame
    left_out: int
    confidence: float


def sample_points(table: Scored, count: int, seed: int = 0) -> pd.DataFrame:
    """`count` of the points of `table`, each set of so many as likely as any other, whatever their values are.

    Every point gets a number keyed by `seed` and its id, and those with the smallest are taken. So the choice knows
    no score, does not depend on the order of the points, and a smaller sample lies within a larger one. Points that
    could not be evaluated take part: to leave them out is up to what is computed on the sample.

    Args:
        table: a run.
        count: how many points; all of them, if the run holds no more.
        seed: another one is another sample.

    Returns:
        `point` (its id), `row` (its place in the data) and `name`, in the order of the data.

    Raises:
        ParameterError: `count` is no whole number of at least 1.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ParameterError(f"the sample must hold a whole number of points, at least 1; found {count!r:.60}")
    points = table.points.select(["point", "row", "name"]).to_pandas()
    keys = [f"{seed}\nsample of points\n{point}".encode("utf-8", "surrogatepass") for point in points["point"]]
    order = sorted(range(len(points)), key=lambda place: hashlib.blake2b(keys[place]).digest())
    return points.iloc[sorted(order[:count])].reset_index(drop=True)


def group_means(
    table: Scored, estimates: Column | None = None, counts: Column | None = None, by: By | None = "label"
) -> GroupMeans:
    """Mean `p_robust` of each class: cheap estimates on all points, corrected by counts on some of them.

    Prediction-powered inference: the mean of the estimates plus the mean of count less estimate over the counted
    points, with the weight of the estimates that gives the narrowest interval (`powered_mean` has the formulas). The
    estimates may be as wrong as they like: the mean stays that of the counts, and useless ones get no weight. The
    interval covers the sampling of points, the choice of the counted ones and the Monte Carlo error of their counts, by
    a method for bounded numbers in small samples that has width where every count is 1.

    Validity: the counted points are a random sample of all points (`sample_points`), or all of them; they have
    as many draws each; a count that failed is missing for no reason that has to do with robustness, and
    `failed` says how many there are. A sample that holds more of some classes gives right means by label, and a wrong
    one of all points.

    Args:
        table: the run that holds the estimates.
        estimates: probability column of `table`; by default the one that speaks for the run beside the counts.
        counts: a `monte_carlo` column of `table`, or of a run over some of its points by the same ids; by default the
            one of `table` with the most draws at the noise that speaks for it.
        by: the class that a point belongs to: `label` or `predicted`; None for the mean over all points.

    Raises:
        DataError: the table lacks a column, no point of it has a class, or none is counted.
        ParameterError: `counts` was not counted, or `by` is none of the words.
    """
    check_column("estimates", estimates)
    check_column("counts", counts)
    counts = counts if counts is not None else _default_counts(table)
    estimates = estimates if estimates is not None else preferred(table.columns, counts.setting, exclude=counts.score)
    if estimates is None:
        found = f"the run holds no estimate of p_robust at {counts.setting} beside {MONTE_CARLO}; score one"
        raise DataError("no_such_score", found)
    _check_counts(counts)
    frame = _points(table, estimates, counts, by)
    whole = frame.dropna(subset=["estimate", "class"])
    if not len(whole["count"].dropna()):
        raise DataError("no_such_score", f"no point of the run has both an estimate and a count by {counts.label}")
    confidence = table.record.confidence
    groups = [
        {"class": None, "name": ALL} | _row(group, confidence)
        if by is None
        else {"class": int(cast(float, key)), "name": class_name(table, int(cast(float, key)))}
        | _row(group, confidence)
        for key, group in whole.groupby("class")
    ]
    left_out = len(frame) - len(whole)
    return GroupMeans(estimates, counts, by, pd.DataFrame(groups, columns=_FIELDS), left_out, confidence)


def format_group_means(found: GroupMeans) -> str:
    """The result of `group_means` as plain text for a terminal."""
    title = (
        f"mean p_robust: {found.estimates.label}, corrected by {found.counts.label}; intervals at "
        f"{100 * found.confidence:.4g}%"
    )
    header = ["group", "points", "counted", "mean", "counts alone", "estimates alone", "weight"]
    lines = [
        [
            row["name"],
            f"{row['points']:,}",
            f"{row['counted']:,}",
            with_interval(row, "mean"),
            with_interval(row, "alone"),
            number(row["estimated"]),
            number(row["weight"]),
        ]
        for row in found.groups.to_dict("records")
    ]
    remarks = [f"{found.left_out:,} points are left out for lack of an estimate or a class"] if found.left_out else []
    if failed := sum(found.groups["failed"].tolist()):
        remarks.append(f"counting gave no number at {failed:,} points, which stand as not counted")
    return "\n".join([title, *aligned([header, *lines]), *remarks])


def _default_counts(table: Scored) -> Column:
    """The Monte Carlo with the most draws, at the noise that speaks for the run if there is one."""
    counts = [one for one in table.columns if one.score == MONTE_CARLO and not one.stops and one.value.notna().any()]
    found = largest_budgets(counts)
    if not found:
        raise DataError("no_such_score", f"the run holds no {MONTE_CARLO}; score some of its points by it")
    return typical(found) or found[0]


def _check_counts(counts: Column) -> None:
    """Raise where a number of the column was not counted, or the count was stopped by what it showed."""
    if counts.stops:
        raise ParameterError(
            f"{counts.label} stopped at every point by what it had counted; count as many draws of each",
        )
    rows = zip(counts.value.tolist(), counts.rows["evidence"].tolist(), strict=True)
    odd = sum(value == value and evidence != Evidence.COUNTED.slug for value, evidence in rows)
    if odd:
        raise ParameterError(
            f"{odd:,} numbers of {counts.label} were not counted; only counts are without bias, such as "
            f"those of {MONTE_CARLO}",
        )


def _points(table: Scored, estimates: Column, counts: Column, by: By | None) -> pd.DataFrame:
    """`class`, `estimate`, `count` and `failed` of every point of `table`."""
    if by not in ("label", "predicted", None):
        raise ParameterError(f"groups are by label, by predicted or None; found {by!r:.60}")
    points = table.points.select(["point", "label", "predicted"]).to_pandas().set_index("point")
    if by is not None and not len(points[by].dropna()):
        raise DataError("no_labels", f"no point of the run has a class by {by}; group by predicted, or by None")
    frame = pd.DataFrame({"class": points[by] if by is not None else 0.0}, index=points.index)
    frame["estimate"] = estimates.p_robust.reindex(frame.index)
    frame["count"] = counts.p_robust.reindex(frame.index)
    frame["failed"] = counts.status.reindex(frame.index).notna() & frame["count"].isna()
    return frame


def _row(group: pd.DataFrame, confidence: float) -> Row:
    estimates, counts = (group[name].to_numpy(dtype=np.float64) for name in ("estimate", "count"))
    counted = counts[~np.isnan(counts)]
    found = powered_mean(estimates, counts, confidence)
    return {
        "points": estimates.size,
        "counted": counted.size,
        "failed": int(np.count_nonzero(group["failed"].to_numpy())),
        **named_interval("mean", found.mean, found.low, found.high),
        "weight": found.weight,
        "estimated": float(estimates.mean()),
        **named_interval("alone", *mean_interval(counted, confidence)),
    }
