"""Do the predictions with the lowest Laplacian flip most, and how large is it on average?"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from brittle.analysis.columns import MONTE_CARLO, laplacian_column, sampled_columns
from brittle.analysis.mean_interval import MeanInterval, mean_interval, skewed_mean
from brittle.errors import ParameterError
from brittle.store.columns import Column, Row
from brittle.store.table import Table
from brittle.text import named_interval

FLIPS, MAX_PROBABILITY = MONTE_CARLO, "max_probability"
"""The scores that say how often the label flipped, and how sure the model is."""

NO_MAX_PROBABILITY = "This run has no max_probability, so its confident points are not known."
TOO_FEW_CONFIDENT = "Fewer than two points are that confident, so there are no two groups."

_FLIPS = (
    "sigma", "noise", "laplacian", "draws", "confident", "points", "dropped", "group",
    "lowest", "lowest_low", "lowest_high", "highest", "highest_low", "highest_high", "p_flips", "reason",
)  # fmt: skip


def label_flips(table: Table, confident: float = 0.8, group: int = 50) -> pd.DataFrame:
    """Do the predictions with the lowest Laplacian flip most, however confident they are?

    Of the points with a predicted probability of at least `confident`, the `group` with the lowest and the `group` with
    the highest Laplacian (at most half of the points each; equal Laplacians in the order of the points' ids) are
    compared by the share of their noisy copies that lose the predicted class, from Monte Carlo with the most draws.

    `p_flips` is the one-sided test of Mann and Whitney, with its correction for ties, that the lowest group does not
    flip more; the intervals of the shares are those of `mean_interval`. Each p-value stands alone: none is corrected
    for the number of noise settings.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, section 4.2, table 1.

    Args:
        table: a run with `laplacian`, `monte_carlo` and `max_probability`.
        confident: smallest predicted probability of a confident point.
        group: points in either group.

    Returns:
        One row per noise setting, by sigma: `sigma`, `noise`; `laplacian` (its label), `draws`; `confident` (the
        threshold), `points` above it with a Laplacian and flips, `dropped` (points of the run that lack any of the
        three numbers), `group` (points in either); `lowest` and `highest` (mean share of flips of these groups), each
        with its interval, `p_flips`; `reason` why there are no groups. Empty without a Laplacian or Monte Carlo.

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
    sure = next((one for one in found if one.score == MAX_PROBABILITY and one.value.notna().any()), None)
    rows = [
        _flip_row(laplacian, flips, sure, confident, group, table.record.confidence)
        for flips in sampled_columns(found, FLIPS).values()
    ]
    return pd.DataFrame(rows, columns=_FLIPS).astype({"draws": "Int64"})


def _flip_row(
    laplacian: Column, flips: Column, sure: Column | None, confident: float, group: int, confidence: float
) -> Row:
    numbers = pd.DataFrame({"laplacian": laplacian.value, "flips": flips.value})
    numbers["sure"] = math.nan if sure is None else sure.value
    known = numbers.loc[np.isfinite(numbers[["laplacian", "flips"]]).all(axis=1)]
    chosen = known.loc[known["sure"] >= confident]
    size = min(group, len(chosen) // 2)
    ordered = chosen.sort_index().sort_values("laplacian", kind="stable")["flips"].to_numpy()
    lowest, highest = ordered[:size], ordered[len(ordered) - size :]
    return {
        "sigma": flips.setting.sigma,
        "noise": flips.setting.noise,
        "laplacian": laplacian.label,
        "draws": flips.draws,
        "confident": float(confident),
        "points": len(chosen),
        "dropped": len(numbers) - known["sure"].count(),
        "group": size,
        **named_interval("lowest", *mean_interval(lowest, confidence)),
        **named_interval("highest", *mean_interval(highest, confidence)),
        "p_flips": _mann_whitney(lowest, highest),
        "reason": NO_MAX_PROBABILITY if sure is None else None if size else TOO_FEW_CONFIDENT,
    }


def _mann_whitney(larger: NDArray[np.float64], smaller: NDArray[np.float64]) -> float:
    """One-sided p-value; NaN without points, 1 where all are alike."""
    if not larger.size or not smaller.size:
        return math.nan
    if np.unique(np.concatenate([larger, smaller])).size < 2:
        return 1.0
    return float(scipy.stats.mannwhitneyu(larger, smaller, alternative="greater").pvalue)


def mean_absolute(table: Table, column: Column | None = None) -> MeanInterval:
    """Mean of `|value|` over the points, `(1 / N) sum_i |L(x_i)|` for the Laplacian: how rough a model is.

    The interval is that of `skewed_mean` (Hall's, with the skewness of such heavy tails taken out), cut at 0. Points
    without a value are left out.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, section 3.1.3.

    Args:
        table: a run.
        column: by default the Laplacian that speaks for the run.

    Raises:
        ParameterError: the run has no Laplacian, or a value is infinite, which leaves no mean.
    """
    chosen = column if column is not None else laplacian_column(table.columns)
    if chosen is None:
        raise ParameterError("this run has no laplacian; score the points by it first")
    values = chosen.value.abs()
    if infinite := int(np.isinf(values).sum()):
        raise ParameterError(f"{chosen.label} is infinite at {infinite} points, so it has no mean")
    mean, low, high = skewed_mean(values, table.record.confidence)
    return MeanInterval(mean, max(low, 0.0), high)
