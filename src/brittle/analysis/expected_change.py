"""Does the Laplacian say how the predicted probability changes under noise?"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.columns import laplacian_column, sampled_columns
from brittle.analysis.correlation import spearman
from brittle.analysis.label_flips import flips_block
from brittle.analysis.mean_interval import MeanInterval, median_interval
from brittle.errors import ParameterError
from brittle.estimate import Status
from brittle.intervals import clopper_pearson, jackknife
from brittle.store.columns import Column, Row, Scored
from brittle.store.settings import Setting
from brittle.text import aligned, named_interval, with_interval

CHANGE = "probability_change"
"""The score that samples the change; its mean is what the Laplacian predicts."""

LEAST_REST = 1e-9
"""Sum of squares without one point, relative to the largest, below which that point alone makes the slope."""

NOT_ISOTROPIC = "This noise is not alike in all directions, so its expected change does not follow from the Laplacian."
NO_POINTS = "No point has both a Laplacian and a sampled change."

_POINTS = (
    "point", "row", "sigma", "noise", "laplacian", "laplacian_low", "laplacian_high", "predicted_change",
    "sampled_change", "sampled_low", "sampled_high", "sign_disagrees", "kink",
)  # fmt: skip
_FIELDS = (
    "sigma", "noise", "laplacian", "draws", "clipped", "points", "dropped", "kinks",
    "decided", "agreement", "agreement_low", "agreement_high", "spearman", "spearman_low", "spearman_high",
    "slope", "slope_low", "slope_high", "ratio", "ratio_low", "ratio_high",
    "median_predicted", "median_sampled", "reason",
)  # fmt: skip


def expected_change_points(table: Scored, setting: Setting | None = None) -> pd.DataFrame:
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
        One row per point, in the order of the data: `point`, `row`, `sigma`, `noise`; `laplacian`, `laplacian_low`,
        `laplacian_high`; `predicted_change`; `sampled_change`, `sampled_low`, `sampled_high`; `sign_disagrees` (the
        sampled interval lies wholly on the other side of 0 than the Laplacian); `kink` (the status of the Laplacian
        says so). NaN where there is no number. Empty without a Laplacian or a sampled change.

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


def expected_change_table(table: Scored) -> pd.DataFrame:
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
        `spearman`, `slope`, `ratio`, each with its interval; `median_predicted` and `median_sampled` change; `reason`
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


def format_expected_change(frame: pd.DataFrame, flips: pd.DataFrame) -> str:
    """The frames of `expected_change_table` and `label_flips` as plain text for a terminal."""
    blocks = [_change_block(frame)] if len(frame) else []
    blocks += [flips_block(flips)] if len(flips) else []
    if not blocks:
        return "No Laplacian with a sampled change or flips in this run, so no expected change to check."
    return "\n\n".join(blocks)


def _points(table: Scored, laplacian: Column, change: Column) -> pd.DataFrame:
    curvature, sampled = laplacian.rows, change.rows
    sigma, noise = change.setting
    factor = 0.5 * (sigma or 0.0) ** 2 if _is_isotropic(change) else math.nan
    sign = np.sign(laplacian.value.to_numpy(dtype=np.float64))
    low, high = sampled["low"].to_numpy(dtype=np.float64), sampled["high"].to_numpy(dtype=np.float64)
    values = {
        "point": table.points["point"].to_pylist(),
        "row": table.points["row"].to_pylist(),
        "sigma": sigma,
        "noise": noise,
        "laplacian": curvature["value"].to_numpy(dtype=np.float64),
        "laplacian_low": curvature["low"].to_numpy(dtype=np.float64),
        "laplacian_high": curvature["high"].to_numpy(dtype=np.float64),
        "predicted_change": factor * laplacian.value.to_numpy(dtype=np.float64),
        "sampled_change": change.value.to_numpy(dtype=np.float64),
        "sampled_low": low,
        "sampled_high": high,
        "sign_disagrees": ((sign > 0.0) & (high < 0.0)) | ((sign < 0.0) & (low > 0.0)),
        "kink": (curvature["status"] == Status.KINK.slug).to_numpy(dtype=bool),
    }
    return pd.DataFrame(values, columns=_POINTS)


def _row(points: pd.DataFrame, laplacian: Column, change: Column, confidence: float) -> Row:
    names = ("predicted_change", "sampled_change", "sampled_low", "sampled_high", "kink")
    numbers = points[list(names)].to_numpy(dtype=np.float64)
    both = np.isfinite(numbers[:, :2]).all(axis=1)
    predicted, sampled, below, above, kinks = numbers[both].T
    decided = (below > 0.0) | (above < 0.0)
    agree = int((np.sign(predicted) == np.sign(sampled))[decided].sum())
    count = int(decided.sum())
    low, high = clopper_pearson(agree, count, confidence) if count else (0.0, 1.0)
    order = spearman(predicted, sampled, confidence)
    moved = predicted != 0.0
    with np.errstate(over="ignore"):
        ratio = median_interval(sampled[moved] / predicted[moved], confidence)
    sigma, noise = change.setting
    return {
        "sigma": sigma,
        "noise": noise,
        "laplacian": laplacian.label,
        "draws": change.draws,
        "clipped": bool(change.parameters.get("clip")),
        "points": predicted.size,
        "dropped": len(points) - predicted.size,
        "kinks": int(kinks.sum()),
        "decided": count,
        **named_interval("agreement", agree / count if count else math.nan, float(low), float(high)),
        **named_interval("spearman", *order[1:]),
        **named_interval("slope", *_slope(predicted, sampled, confidence)),
        **named_interval("ratio", *ratio),
        "median_predicted": median_interval(predicted, confidence).median,
        "median_sampled": median_interval(sampled, confidence).median,
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


def _change_block(frame: pd.DataFrame) -> str:
    title = f"Expected change of the predicted probability: sigma^2/2 {frame['laplacian'].iloc[0]} against sampling"
    rows = frame.to_dict("records")
    lines = [
        [
            str(Setting(row["sigma"], row["noise"])) + (" *" if row["clipped"] else ""),
            f"{row['points']:,}",
            f"{row['decided']:,}",
            *(with_interval(row, name) for name in ("agreement", "spearman", "slope", "ratio")),
        ]
        for row in rows
    ]
    header = ["noise", "points", "decided", "same sign", "Spearman", "slope", "median ratio"]
    clipped = any(row["clipped"] for row in rows)
    remarks = ["* of clipped copies, whose noise is not that of the prediction"] if clipped else []
    if (kinks := max(row["kinks"] for row in rows)) > 0:
        remarks.append(f"{kinks:,} points are at a kink of the network, where the Laplacian sees one side only")
    if (dropped := max(row["dropped"] for row in rows)) > 0:
        remarks.append(f"up to {dropped:,} points are left out for lack of a number")
    reasons = [str(reason) for reason in frame["reason"].dropna().unique()]
    return "\n".join([title, *aligned([header, *lines]), *remarks, *reasons])
