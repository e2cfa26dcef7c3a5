"""What so many noisy copies can show: a point that none of them flips is not yet one that surely holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.decisions import drawn
from brittle.estimate import Evidence
from brittle.store.columns import HOLDS, UNDECIDED, Column


@dataclass(frozen=True)
class TooFew:
    """Points that could not hold, whatever their noisy copies had said: these are too few for the limit.

    Attributes:
        points: undecided points with too few copies.
        undecided: all undecided points.
        copies: how many the points have, at most.
        every: whether all points of the run have as many.
    """

    points: int
    undecided: int
    copies: int
    every: bool


def best_ends(column: Column, confidence: float) -> tuple[NDArray[np.float64], dict[int, float]]:
    """How many noisy copies each point has, and how small the flip probability can be shown to be by so many.

    Of columns alone whose intervals all count these copies (`Column.rests_on`).

    Where some point with `n` copies has none that flips, that is the upper end of its interval by counting, `h`. Exact
    binomial intervals have `1 - h = t^(1/n)` there, with one `t` for all `n`, so that one number of copies gives the
    others. Where no point is without flips, `t` is `(1 - confidence) / 2`, that of Clopper and Pearson: no exact
    interval with two ends is shorter.

    Args:
        column: flip probabilities.
        confidence: of the intervals.

    Returns:
        The copies of each point, `[N]`, NaN where the table does not tell; and the best end by the number of copies.
    """
    if set(column.rests_on[column.value.notna()]) - {Evidence.COUNTED.slug}:
        return np.full(len(column), np.nan), {}
    copies = drawn(column).to_numpy(dtype=np.float64)
    low, high = (column.rows[name].to_numpy(dtype=np.float64) for name in ("counted_low", "counted_high"))
    copies = np.where(np.isnan(low) | np.isnan(high) | ~(copies > 0), np.nan, copies)
    numbers = np.unique(copies[~np.isnan(copies)])
    seen = {float(count): high[(copies == count) & (low == 0.0)].min(initial=1.0) for count in numbers}
    logs = [count * math.log1p(-end) for count, end in seen.items() if end < 1.0]
    log_tail = max(logs, default=math.log((1.0 - confidence) / 2.0))
    best = {int(count): float(end if end < 1.0 else -math.expm1(log_tail / count)) for count, end in seen.items()}
    return copies, best


def too_few(copies: NDArray[np.float64], best: Mapping[int, float], states: pd.Series, limit: float) -> TooFew | None:
    """Whether undecided points have too few noisy copies to hold at the limit; None where no point has.

    Args:
        copies: of each point, as `best_ends` gives them.
        best: the best end by the number of copies, likewise.
        states: of each point, at the limit.
        limit: a prediction holds where `p_robust` is at least this.
    """
    held, undecided = ((states == state).to_numpy(dtype=bool) for state in (HOLDS, UNDECIDED))
    short = [count for count, end in best.items() if end > 1.0 - limit and count not in set(copies[held].tolist())]
    few = undecided & np.isin(copies, short)
    if not few.any():
        return None
    return TooFew(int(few.sum()), int(undecided.sum()), int(copies[few].max()), len(best) == 1)
