"""Expected robustness: the share of points that are right and stay so, averaged over sizes of the perturbation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from brittle.analysis.mean_interval import MeanInterval, mean_interval
from brittle.estimate import COUNT, Status
from brittle.store.columns import Column
from brittle.store.table import Table

USUAL = {"linf": (8.0 / 255.0, "8/255"), "l2": (0.5, "0.5"), "l1": (12.0, "12"), "l0": (24.0, "24")}
"""The perturbation sizes that most benchmarks judge at, for inputs from 0 to 1, and how one writes them."""

MIDDLE = (0.05, 0.95)
"""The quantiles of the finite margins between which a usual size serves: outside, nearly all points are on one side."""


class Epsilon(NamedTuple):
    """A perturbation size, how one writes it, and why it is this one."""

    value: float
    text: str
    reason: str


def choose_epsilon(margin: pd.Series, norm: str, bounds: tuple[float, float] | None) -> Epsilon:
    """Return the default perturbation size to judge `margin` at: the usual one, or the median margin."""
    usual, text = USUAL[norm]
    finite = pd.Series(margin[np.isfinite(margin)])
    if finite.empty:
        return Epsilon(usual, text, "the usual size, as no distance is known that could suggest another")
    unit = bounds == (0.0, 1.0)
    low, high = (float(finite.quantile(share)) for share in MIDDLE)
    if unit and low <= usual <= high:
        return Epsilon(usual, text, "the size that most benchmarks judge at in this norm")
    median = float(f"{finite.median():.2g}")
    why = f"the usual {text} parts hardly any of them" if unit else "the inputs do not range from 0 to 1"
    return Epsilon(median, f"{median:.2g}", f"the median of the distances found, rounded, as {why}")


class Shares(NamedTuple):
    """Shares of the sizes that points survive, one per point.

    Attributes:
        value: NaN where a right point has no margin, or a labelled one no prediction.
        low: the value; 0 where it is NaN, and `proved` where the margin is masked.
        proved: the share by the certificate, 0 without one.
    """

    value: pd.Series
    low: pd.Series
    proved: pd.Series


def surviving_sizes(table: Table, margin: Column, epsilon: float) -> Shares:
    r"""Return, per point, the share of the sizes from 0 to `epsilon` at which it is right and not broken.

    $$\mathrm{value} = [\mathrm{right}] \, \min(d, \epsilon) / \epsilon, \qquad
    \frac1n \sum_i \mathrm{value}_i = \frac1\epsilon \int_0^\epsilon \mathrm{robust\ accuracy}(r) \, dr.$$

    The second is the expected robustness: the robust accuracy at a size that is uniform on `[0, epsilon]`, in L0 on the
    whole numbers of it. Where of no prediction it is known, every one counts as right.

    Validity: margins `d` of attacks are upper bounds, and so are the shares; exact where the margins are.

    References:
        Robust fine-tuning from non-robust pretrained models, Jonas Ngnawé et al., 2025,
        https://arxiv.org/abs/2509.23325

    Args:
        table: a run.
        margin: one of its input margins.
        epsilon: the largest size.

    Returns:
        the shares, without unlabelled points if it is known of others whether they are right.
    """
    points = table.points.select(["point", "label", "target", "correct"]).to_pandas().set_index("point")
    has_label = points.notna().any(axis=1)
    right = points["correct"].map({True: 1.0, False: 0.0}).astype(float)
    if right.isna().all():
        has_label, right = right.isna(), right.fillna(1.0)
    if margin.parameters.get("norm") == COUNT:
        epsilon = math.floor(epsilon) + 1.0  # a distance `d` survives the `min(d, epsilon)` whole numbers below it
    value, proved = (
        _share(distance, epsilon).where(right == 1.0).mask(right == 0.0, 0.0) for distance in (margin.value, margin.low)
    )
    proved = proved.fillna(0.0)
    low = value.where(margin.status != Status.MASKED.slug, proved).fillna(0.0)
    return Shares(*(pd.Series(share[has_label]) for share in (value, low, proved)))


def _share(distance: pd.Series, epsilon: float) -> pd.Series:
    """Return the share of the sizes up to `epsilon` below a distance; at 0 whether the distance is larger."""
    if epsilon > 0.0:
        return distance.clip(upper=epsilon) / epsilon
    return (distance > 0.0).astype(float).where(distance.notna())


@dataclass(frozen=True)
class ExpectedRobustness:
    """Mean of `surviving_sizes` over points.

    Attributes:
        interval: the mean over points with a value; its interval holds the mean whatever the open shares are.
        points: how many there are.
        open_points: those whose `low` is below `high`.
        labelled: whether it is the mean of robust accuracies; else every prediction counts as right.
        proved: mean of the shares that are proved, a lower estimate; equal to the mean where all margins are exact.
    """

    interval: MeanInterval
    points: int
    open_points: int
    labelled: bool
    proved: float


def expected_robustness(table: Table, margin: Column, epsilon: float, confidence: float) -> ExpectedRobustness:
    """Return the expected robustness of a run up to the size `epsilon`.

    Validity: that of `mean_interval`, for a size that was not chosen by these margins; else to first order.
    """
    shares = surviving_sizes(table, margin, epsilon)
    mean, proved = (float(share.mean()) for share in (shares.value, shares.proved))
    high_shares = shares.value.fillna(1.0)
    low, high = (mean_interval(share, confidence) for share in (shares.low, high_shares))
    labelled = table.points["correct"].null_count < len(table.points)
    open_points = int(np.count_nonzero(shares.low < high_shares))
    return ExpectedRobustness(MeanInterval(mean, low.low, high.high), len(shares.value), open_points, labelled, proved)
