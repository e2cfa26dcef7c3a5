"""Do the predictions with the lowest Laplacian flip most, and how large is it on average?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from brittle.analysis.columns import LAPLACIAN, MONTE_CARLO, laplacian_column, sampled_columns
from brittle.analysis.mean_interval import mean_interval, skewed_mean
from brittle.errors import ParameterError
from brittle.store.columns import Column, Row, Scored
from brittle.store.settings import Setting
from brittle.text import aligned, named_interval, number, with_interval

FLIPS, CONFIDENCE = MONTE_CARLO, "max_probability"
"""The scores that say how often the label flipped, and how sure the model is."""

NO_MAX_PROBABILITY = "This run has no max_probability, so its confident points are not known."
TOO_FEW_CONFIDENT = "Fewer than two points are that confident, so there are no two groups."

_FLIPS = (
    "sigma", "noise", "laplacian", "draws", "confident", "points", "dropped", "group",
    "lowest", "lowest_low", "lowest_high", "highest", "highest_low", "highest_high", "p_flips",
    "flipped", "never_flipped", "laplacian_flipped", "laplacian_flipped_low", "laplacian_flipped_high",
    "laplacian_never", "laplacian_never_low", "laplacian_never_high", "p_laplacian", "reason",
)  # fmt: skip


def label_flips(table: Scored, confident: float = 0.8, group: int = 50) -> pd.DataFrame:
    """Do the predictions with the lowest Laplacian flip most, however confident they are?

    Of the points with a predicted probability of at least `confident`, the `group` with the lowest and the `group` with
    the highest Laplacian (at most half of the points each; equal Laplacians in the order of the points' ids) are
    compared by the share of their noisy copies that lose the predicted class, from Monte Carlo with the most draws.
    The other way round, of all points with a Laplacian, those that flipped at least once are compared with those that
    never did, by their mean Laplacian; who ever flips depends on the number of draws.

    Tests: `p_flips`, the one-sided test of Mann and Whitney, with its correction for ties, that the lowest group does
    not flip more; `p_laplacian`, Welch's two-sided t-test of equal means. Intervals: `mean_interval` for the shares,
    `skewed_mean` for the Laplacians. Each p-value stands alone: none is corrected for the number of noise settings.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, section 4.2,
        table 1, figure 4.

    Args:
        table: a run with `laplacian`, `monte_carlo` and `max_probability`.
        confident: smallest predicted probability of a confident point.
        group: points in either group.

    Returns:
        One row per noise setting, by sigma: `sigma`, `noise`; `laplacian` (its label), `draws`; `confident` (the
        threshold), `points` above it with a Laplacian and flips, `dropped` (points of the run that lack any of the
        three numbers), `group` (points in either); `lowest` and `highest` (mean share of flips of these groups), each
        with its interval, `p_flips`; `flipped` and `never_flipped` (numbers of points), `laplacian_flipped` and
        `laplacian_never` (means), each with its interval, `p_laplacian`; `reason` why there are no groups. Empty
        without a Laplacian or Monte Carlo.

    Raises:
        ParameterError: the probability is not between 0 and 1, or the group not at least 1.
    """
    if not 0.0 <= confident <= 1.0:
        raise ParameterError(f"confident must be a probability between 0 and 1; found {confident}")
    if group < 1:
        raise ParameterError(f"a group must have at least 1 point; found {group}")
    found = table.columns
    laplacian = laplacian_column(found)
    if laplacian is None:
        return pd.DataFrame(columns=_FLIPS)
    sure = next((one for one in found if one.score == CONFIDENCE and one.value.notna().any()), None)
    rows = [
        _flip_row(laplacian, flips, sure, confident, group, table.record.confidence)
        for flips in sampled_columns(found, FLIPS).values()
    ]
    return pd.DataFrame(rows, columns=_FLIPS).astype({"draws": "Int64"})


def flips_block(flips: pd.DataFrame) -> str:
    """The frame of `label_flips`, which is not empty, as plain text for a terminal."""
    rows = flips.to_dict("records")
    confident, group = rows[0]["confident"], max(row["group"] for row in rows)
    title = (
        f"Flips of predictions with a probability of at least {confident:g}: the {group:,} points with the lowest "
        f"Laplacian against the {group:,} with the highest;\nmean Laplacian L of all points that ever flipped or never"
    )
    header = ["noise", "points", "lowest", "highest", "p", "flipped", "L if flipped", "L if never", "p"]
    lines = [
        [
            str(Setting(row["sigma"], row["noise"])),
            f"{row['points']:,}",
            with_interval(row, "lowest"),
            with_interval(row, "highest"),
            number(row["p_flips"]),
            f"{row['flipped']:,} of {row['flipped'] + row['never_flipped']:,}",
            number(row["laplacian_flipped"]),
            number(row["laplacian_never"]),
            number(row["p_laplacian"]),
        ]
        for row in rows
    ]
    reasons = [str(reason) for reason in flips["reason"].dropna().unique()]
    return "\n".join([title, *aligned([header, *lines]), *reasons])


def _flip_row(
    laplacian: Column, flips: Column, sure: Column | None, confident: float, group: int, confidence: float
) -> Row:
    numbers = pd.DataFrame({"laplacian": laplacian.value, "flips": flips.value})
    known = cast(pd.DataFrame, numbers[np.isfinite(numbers["laplacian"]) & np.isfinite(numbers["flips"])])
    certainty = None if sure is None else sure.value.reindex(known.index)
    chosen = known if certainty is None else cast(pd.DataFrame, known[certainty >= confident])
    size = 0 if certainty is None else min(group, len(chosen) // 2)
    ordered = chosen.sort_index().sort_values("laplacian", kind="stable")["flips"].to_numpy()
    lowest, highest = ordered[:size], ordered[len(ordered) - size :]
    sigma, noise = flips.setting
    return {
        "sigma": sigma,
        "noise": noise,
        "laplacian": laplacian.label,
        "draws": flips.draws,
        "confident": float(confident),
        "points": 0 if certainty is None else len(chosen),
        "dropped": len(numbers) - (0 if certainty is None else int(certainty.notna().sum())),
        "group": size,
        **named_interval("lowest", *mean_interval(lowest, confidence)),
        **named_interval("highest", *mean_interval(highest, confidence)),
        "p_flips": _mann_whitney(lowest, highest),
        **_by_flipping(known, confidence),
        "reason": NO_MAX_PROBABILITY if certainty is None else None if size else TOO_FEW_CONFIDENT,
    }


def _by_flipping(known: pd.DataFrame, confidence: float) -> Row:
    """The mean Laplacian of points that flipped at least once and of those that never did."""
    laplacian, ever = known["laplacian"].to_numpy(), (known["flips"] > 0.0).to_numpy()
    return {
        "flipped": int(ever.sum()),
        "never_flipped": int((~ever).sum()),
        **named_interval("laplacian_flipped", *skewed_mean(laplacian[ever], confidence)),
        **named_interval("laplacian_never", *skewed_mean(laplacian[~ever], confidence)),
        "p_laplacian": _welch(laplacian[ever], laplacian[~ever]),
    }


def _mann_whitney(larger: NDArray[np.float64], smaller: NDArray[np.float64]) -> float:
    """One-sided p-value; NaN without points, 1 where all are alike."""
    if not larger.size or not smaller.size:
        return math.nan
    if np.unique(np.concatenate([larger, smaller])).size < 2:
        return 1.0
    return float(scipy.stats.mannwhitneyu(larger, smaller, alternative="greater").pvalue)


def _welch(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Two-sided p-value; NaN where either has fewer than two points or neither varies."""
    if min(first.size, second.size) < 2 or (np.unique(first).size < 2 and np.unique(second).size < 2):
        return math.nan
    scale = max(float(np.abs(first).max()), float(np.abs(second).max()))
    one, other = ((float(side.mean()), float(side.std(ddof=1)), side.size) for side in (first / scale, second / scale))
    return float(scipy.stats.ttest_ind_from_stats(*one, *other, equal_var=False).pvalue)


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
