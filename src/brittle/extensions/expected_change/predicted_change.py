"""Tests of the Laplacian against sampling: the change of the predicted probability, and the flips of labels."""

import math

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from brittle.analysis.columns import CHANGE, MONTE_CARLO, laplacian_column, sampled_columns
from brittle.analysis.correlation import spearman
from brittle.analysis.mean_interval import MeanInterval, mean_interval, median_interval, skewed_mean
from brittle.errors import ParameterError
from brittle.estimate import Status
from brittle.intervals import clopper_pearson, jackknife
from brittle.store.columns import Column, Row
from brittle.store.settings import Setting
from brittle.store.table import Table
from brittle.text import named_interval

MIN_SQUARES = 1e-9  # sum of squares without a point, as a share of the largest, below which that point sets the slope

NOT_ISOTROPIC = "This noise is not alike in all directions, so its expected change does not follow from the Laplacian."
NO_POINTS = "No point has both a Laplacian and a sampled change."

_POINTS = (
    "point", "row", "sigma", "noise", "laplacian", "predicted_change", "sampled_change", "sampled_low",
    "sampled_high", "kink",
)  # fmt: skip
_FIELDS = (
    "sigma", "noise", "laplacian", "draws", "clipped", "points", "dropped", "kinks",
    "decided", "agreement", "agreement_low", "agreement_high", "spearman", "spearman_low", "spearman_high",
    "slope", "slope_low", "slope_high", "ratio", "ratio_low", "ratio_high", "reason",
)  # fmt: skip

FLIPS, MAX_PROBABILITY = MONTE_CARLO, "max_probability"  # scores: share of flips, confidence of the model

NO_MAX_PROBABILITY = "This run has no max_probability, so its confident points are not known."
TOO_FEW_CONFIDENT = "Fewer than two points are that confident, so there are no two groups."

_FLIPS = (
    "sigma", "noise", "laplacian", "draws", "confident", "points", "dropped", "group",
    "lowest", "lowest_low", "lowest_high", "highest", "highest_low", "highest_high", "p_flips", "reason",
)  # fmt: skip


def expected_change_points(table: Table, setting: Setting | None = None) -> pd.DataFrame:
    r"""Return the change that the Laplacian predicts and the sampled change, point by point, at one noise setting.

    $$E[p_c(x + e) - p_c(x)] = \frac{\sigma^2}{2} L + O(\sigma^4).$$

    If the run has several sampled changes, the one without clipping and with the most draws counts; if it has several
    Laplacians, the first of `METHODS`.

    Validity: for noise alike in all directions (covariance `sigma^2 I`); the predicted change is NaN for any other. The
    Laplacian of a point at a kink, or of a piecewise linear network, ignores the kinks within the noise.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, theorem 1.

    Args:
        table: a run.
        setting: the noise; by default the one with the smallest sigma, where the expansion is most accurate.

    Returns:
        One row per point, in the order of the data: `point`, `row`, `sigma`, `noise`; `laplacian`; `predicted_change`;
        `sampled_change`, `sampled_low`, `sampled_high`; `kink` (the status of the Laplacian says so). NaN where there
        is no number. Empty without a Laplacian or a sampled change.

    Raises:
        ParameterError: nothing was sampled at `setting`.
    """
    columns = table.columns
    laplacian, changes = laplacian_column(columns), sampled_columns(columns, CHANGE)
    if laplacian is None or not changes:
        return pd.DataFrame(columns=_POINTS)
    setting = next(iter(changes)) if setting is None else setting
    if setting not in changes:
        settings = "; ".join(map(str, changes))
        raise ParameterError(f"no mean change was sampled at {setting}; there is {settings}")
    return _points(table, laplacian, changes[setting])


def expected_change_table(table: Table) -> pd.DataFrame:
    r"""Compare `sigma^2 / 2 L` with the sampled mean change of the predicted probability, by noise setting.

    With predicted changes `p_i` and sampled changes `s_i`, the slope is that of least squares through the origin,
    `sum p_i s_i / sum p_i^2`, which the largest changes dominate; the ratio is the median of `s_i / p_i` over the
    points with `p_i != 0`, which no single point dominates. Both are 1 where the prediction is right.

    Intervals, at the confidence of the run: the share of equal signs, Clopper-Pearson; Spearman's correlation and the
    slope, Student's from the jackknife over points; the ratio, order statistics. They cover the sampling of points.
    Sampling error of the changes lowers the correlation and spreads the ratio.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, theorem 1.

    Args:
        table: a run.

    Returns:
        One row per noise setting, by sigma: `sigma`, `noise`; `laplacian` (its label), `draws` and `clipped` (of the
        sampled change); `points` with both numbers, `dropped` points, `kinks` among the points; `decided` (points whose
        sampled interval excludes 0), `agreement` (share of these whose Laplacian has the same sign; a Laplacian of 0
        has not); `spearman`, `slope`, `ratio`, each with its interval; `reason` why there is nothing to compare. Empty
        without a Laplacian or a sampled change.
    """
    columns = table.columns
    laplacian, confidence = laplacian_column(columns), table.record.confidence
    if laplacian is None:
        return pd.DataFrame(columns=_FIELDS)
    changes = sampled_columns(columns, CHANGE).values()
    rows = [_row(_points(table, laplacian, change), laplacian, change, confidence) for change in changes]
    return pd.DataFrame(rows, columns=_FIELDS).astype({"draws": "Int64"})


def _points(table: Table, laplacian: Column, change: Column) -> pd.DataFrame:
    sigma, noise = change.setting
    frame = table.points.select(["point", "row"]).to_pandas().set_index("point", drop=False)
    frame = frame.assign(sigma=sigma, noise=noise, laplacian=laplacian.value)
    factor = 0.5 * (sigma or 0.0) ** 2 if _is_isotropic(change) else math.nan
    frame["predicted_change"], frame["sampled_change"] = factor * laplacian.value, change.value
    frame = frame.join(change.rows[["low", "high"]].add_prefix("sampled_"))
    frame["kink"] = laplacian.status == Status.KINK.slug
    return frame.reset_index(drop=True)[[*_POINTS]]


def _row(points: pd.DataFrame, laplacian: Column, change: Column, confidence: float) -> Row:
    names = ["predicted_change", "sampled_change", "sampled_low", "sampled_high", "kink"]
    numbers = points[names].to_numpy(dtype=np.float64)
    predicted, sampled, below, above, kinks = numbers[np.isfinite(numbers[:, :2]).all(axis=1)].T
    decided = (below > 0.0) | (above < 0.0)
    agree, count = int((np.sign(predicted) == np.sign(sampled))[decided].sum()), int(decided.sum())
    ends = clopper_pearson(agree, count, confidence) if count else (0.0, 1.0)
    moved = predicted != 0.0
    with np.errstate(over="ignore"):
        ratio = median_interval(sampled[moved] / predicted[moved], confidence)
    return {
        "sigma": change.setting.sigma,
        "noise": change.setting.noise,
        "laplacian": laplacian.label,
        "draws": change.draws,
        "clipped": bool(change.parameters.get("clip")),
        "points": predicted.size,
        "dropped": len(points) - predicted.size,
        "kinks": int(kinks.sum()),
        "decided": count,
        **named_interval("agreement", agree / count if count else math.nan, *map(float, ends)),
        **named_interval("spearman", *spearman(predicted, sampled, confidence)[1:4]),
        **named_interval("slope", *_slope(predicted, sampled, confidence)),
        **named_interval("ratio", *ratio),
        "reason": None if predicted.size else NO_POINTS if _is_isotropic(change) else NOT_ISOTROPIC,
    }


def _is_isotropic(change: Column) -> bool:
    """Return whether the covariance of the noise is `sigma^2 I`: only then is `sigma^2 / 2 L` the expected change."""
    return change.noise is not None and change.noise.isotropic is True


def _slope(predicted: NDArray[np.float64], sampled: NDArray[np.float64], confidence: float) -> MeanInterval:
    """Fit least squares through the origin, with a jackknife over points in closed form."""
    scale = float(np.abs(predicted).max(initial=0.0))
    if scale == 0.0:
        return MeanInterval(math.nan, -math.inf, math.inf)
    shares = predicted / scale  # so that the squares of small changes do not vanish
    products, squares = shares * sampled, shares**2
    value = float(products.sum() / squares.sum())
    squares_without = squares.sum() - squares
    if squares_without.min() < MIN_SQUARES:
        return MeanInterval(value / scale, -math.inf, math.inf)
    slopes_without = (products.sum() - products) / squares_without
    half = float(jackknife(slopes_without[None, :], np.array([shares.size]), confidence)[0])
    return MeanInterval(value / scale, (value - half) / scale, (value + half) / scale)


def label_flips(table: Table, confident: float = 0.8, group: int = 50) -> pd.DataFrame:
    """Test whether confident predictions with the lowest Laplacian flip most.

    Among the points with a predicted probability of at least `confident`, compare the `group` with the lowest and the
    `group` with the highest Laplacian (at most half of the points each; equal Laplacians in the order of the ids) by
    the share of their noisy copies that lose the predicted class, from Monte Carlo with the most draws.

    `p_flips` is the p-value of the one-sided test of Mann and Whitney, with its correction for ties, that the lowest
    group does not flip more; the intervals of the shares are those of `mean_interval`. No p-value is corrected for the
    number of noise settings.

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
    columns = table.columns
    laplacian = laplacian_column(columns)
    if laplacian is None:
        return pd.DataFrame(columns=_FLIPS)
    sure = next((column for column in columns if column.score == MAX_PROBABILITY and column.value.notna().any()), None)
    sampled = sampled_columns(columns, FLIPS).values()
    rows = [_flip_row(laplacian, flips, sure, confident, group, table.record.confidence) for flips in sampled]
    return pd.DataFrame(rows, columns=_FLIPS).astype({"draws": "Int64"})


def _flip_row(
    laplacian: Column, flips: Column, sure: Column | None, confident: float, group: int, confidence: float
) -> Row:
    numbers = pd.DataFrame({"laplacian": laplacian.value, "flips": flips.value})
    numbers["sure"] = math.nan if sure is None else sure.value
    complete = numbers.loc[np.isfinite(numbers[["laplacian", "flips"]]).all(axis=1)]
    chosen = complete.loc[complete["sure"] >= confident]
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
        "dropped": len(numbers) - complete["sure"].count(),
        "group": size,
        **named_interval("lowest", *mean_interval(lowest, confidence)),
        **named_interval("highest", *mean_interval(highest, confidence)),
        "p_flips": _mann_whitney(lowest, highest),
        "reason": NO_MAX_PROBABILITY if sure is None else None if size else TOO_FEW_CONFIDENT,
    }


def _mann_whitney(larger: NDArray[np.float64], smaller: NDArray[np.float64]) -> float:
    """Return the one-sided p-value; NaN without points, 1 if all are equal."""
    if not larger.size or not smaller.size:
        return math.nan
    if np.unique(np.concatenate([larger, smaller])).size < 2:
        return 1.0
    return float(scipy.stats.mannwhitneyu(larger, smaller, alternative="greater").pvalue)


def mean_absolute(table: Table, column: Column | None = None) -> MeanInterval:
    """Mean of `|value|` over the points, `(1 / N) sum_i |L(x_i)|` for the Laplacian: the roughness of a model.

    The interval is that of `skewed_mean` (Hall's, corrected for skewness), cut at 0. Points without a value are out.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, section 3.1.3.

    Args:
        table: a run.
        column: by default the representative Laplacian of the run.

    Raises:
        ParameterError: the run has no Laplacian, or a value is infinite, so that no mean exists.
    """
    column = column if column is not None else laplacian_column(table.columns)
    if column is None:
        raise ParameterError("this run has no laplacian; score the points by it first")
    values = column.value.abs()
    if infinite := int(np.isinf(values).sum()):
        raise ParameterError(f"{column.label} is infinite at {infinite} points, so it has no mean")
    mean, low, high = skewed_mean(values, table.record.confidence)
    return MeanInterval(mean, max(low, 0.0), high)
