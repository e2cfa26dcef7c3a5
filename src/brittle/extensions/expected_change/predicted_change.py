"""Does the Laplacian say how the predicted probability changes under noise?"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.columns import CHANGE, laplacian_column, sampled_columns
from brittle.analysis.correlation import spearman
from brittle.analysis.mean_interval import MeanInterval, median_interval
from brittle.errors import ParameterError
from brittle.estimate import Status
from brittle.intervals import clopper_pearson, jackknife
from brittle.store.columns import Column, Row
from brittle.store.settings import Setting
from brittle.store.table import Table
from brittle.text import named_interval

LEAST_REST = 1e-9
"""Sum of squares without one point, relative to the largest, below which that point alone makes the slope."""

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


def expected_change_points(table: Table, setting: Setting | None = None) -> pd.DataFrame:
    r"""The change that the Laplacian predicts and the one that was sampled, point by point, at one noise setting.

    $$E[p_c(x + e) - p_c(x)] = \frac{\sigma^2}{2} L + O(\sigma^4).$$

    Of several sampled changes the one without clipping and with the most draws is taken; of several Laplacians the
    first of `METHODS`.

    Validity: of noise alike in all directions (covariance `sigma^2 I`); the predicted change is NaN for any other. The
    Laplacian of a point at a kink, or of a piecewise linear network, sees nothing of the kinks within the noise.

    References:
        The analysis of the expected change in the classification probability of the predicted label, Ruo Yang, Ping
        Liu and Mustafa Bilgic, 2023, Transactions on Machine Learning Research, theorem 1.

    Args:
        table: a run.
        setting: the noise; by default the one with the smallest sigma, where the prediction holds best.

    Returns:
        One row per point, in the order of the data: `point`, `row`, `sigma`, `noise`; `laplacian`; `predicted_change`;
        `sampled_change`, `sampled_low`, `sampled_high`; `kink` (the status of the Laplacian says so). NaN where there
        is no number. Empty without a Laplacian or a sampled change.

    Raises:
        ParameterError: nothing was sampled at `setting`.
    """
    found = table.columns
    laplacian, changes = laplacian_column(found), sampled_columns(found, CHANGE)
    if laplacian is None or not changes:
        return pd.DataFrame(columns=_POINTS)
    setting = next(iter(changes)) if setting is None else setting
    if setting not in changes:
        known = "; ".join(str(one) for one in changes)
        raise ParameterError(f"no mean change was sampled at {setting}; there is {known}")
    return _points(table, laplacian, changes[setting])


def expected_change_table(table: Table) -> pd.DataFrame:
    r"""How well `sigma^2 / 2 L` predicts the sampled mean change of the predicted probability, by noise setting.

    With predicted changes `p_i` and sampled ones `s_i`, the slope is that of least squares through the origin,
    `sum p_i s_i / sum p_i^2`, which the largest changes decide; the ratio is the median of `s_i / p_i` over the points
    with `p_i != 0`, which no single point does. Both are 1 where the prediction is right.

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
        sampled change); `points` with both numbers, `dropped`, `kinks` (of the points); `decided` (points whose sampled
        interval excludes 0), `agreement` (share of these whose Laplacian has the same sign; one of 0 has not);
        `spearman`, `slope`, `ratio`, each with its interval; `reason`
        why there is nothing to compare. Empty without a Laplacian or a sampled change.
    """
    found = table.columns
    laplacian, confidence = laplacian_column(found), table.record.confidence
    if laplacian is None:
        return pd.DataFrame(columns=_FIELDS)
    rows = [
        _row(_points(table, laplacian, change), laplacian, change, confidence)
        for change in sampled_columns(found, CHANGE).values()
    ]
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
    both = np.isfinite(numbers[:, :2]).all(axis=1)
    predicted, sampled, below, above, kinks = numbers[both].T
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
    """Whether the covariance of its noise is `sigma^2 I`, of which alone `sigma^2 / 2 L` is the expected change."""
    return change.noise is not None and change.noise.isotropic is True


def _slope(predicted: NDArray[np.float64], sampled: NDArray[np.float64], confidence: float) -> MeanInterval:
    """Least squares through the origin, and its jackknife over points in closed form."""
    scale = float(np.abs(predicted).max(initial=0.0))
    if scale == 0.0:
        return MeanInterval(math.nan, -math.inf, math.inf)
    shares = predicted / scale  # so that the squares of small changes do not vanish
    products, squares = shares * sampled, shares**2
    value = float(products.sum() / squares.sum())
    rest = squares.sum() - squares
    if rest.min() < LEAST_REST:
        return MeanInterval(value / scale, -math.inf, math.inf)
    half = float(jackknife(((products.sum() - products) / rest)[None, :], np.array([shares.size]), confidence)[0])
    return MeanInterval(value / scale, (value - half) / scale, (value + half) / scale)
