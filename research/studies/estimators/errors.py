"""How far each estimator is off at each budget, on one network and noise level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.counting import error_of_counting, exact_interval
from studies.ranks import kendall, spearman
from studies.tables import Frame

ROUNDING = 1e-12
"""Width of an interval that is none."""


def errors_of(estimates: Frame, flips: NDArray[np.int64], reference: int) -> pd.DataFrame:
    """One row for each estimator and budget of a table of estimates.

    Columns:
        points: with a number.
        passes: of a point, in the mean, as the library counts them.
        error: mean absolute error of `p_robust`.
        ratio: that, as a share of the error of counting with as many passes, of which one is the clean pass.
        bias: mean of the estimate less the truth.
        spearman, kendall: rank correlations with the truth.
        intervals: points with an interval.
        missed: intervals that share no number with the exact interval of the truth.
        outside: intervals that do not hold the count itself.
        width: of the intervals, in the mean.
    """
    flip = flips / reference
    keys = ["origin", "estimator", "budget"]
    rows = []
    for key, group in estimates.groupby(keys, sort=False):
        there = np.isfinite(group["p_robust"].to_numpy())
        one = group[there]
        truth = flip[one["point"].to_numpy()]
        off = one["p_robust"].to_numpy() - (1 - truth)
        passes = float(group["passes"].mean())
        error = float(np.abs(off).mean()) if len(off) else np.nan
        base = error_of_counting(truth, passes - 1, reference) if len(off) else 0.0
        row: dict[str, Any] = dict(zip(keys, key, strict=True)) | {
            "points": len(one),
            "passes": passes,
            "error": error,
            "ratio": error / base if base > 0 else np.nan,
            "bias": float(off.mean()) if len(off) else np.nan,
            "spearman": spearman(one["p_robust"], -truth),
            "kendall": kendall(one["p_robust"], -truth),
        }
        rows.append(row | _intervals(one, flips, reference))
    return pd.DataFrame(rows)


def _intervals(one: Frame, flips: NDArray[np.int64], reference: int) -> dict[str, Any]:
    """Of an estimator whose ends are its value at every point, there are none; one may be 1 to 1 where it is sure."""
    held = one[np.isfinite(one["low"]) & np.isfinite(one["high"])]
    if not (held["high"] - held["low"] > ROUNDING).any():
        return {"intervals": 0, "missed": 0, "outside": 0, "width": np.nan}
    own = flips[held["point"].to_numpy()]
    low, high = exact_interval(own, reference)
    count = 1 - own / reference
    return {
        "intervals": len(held),
        "missed": int(((held["low"] > 1 - low) | (held["high"] < 1 - high)).sum()),
        "outside": int(((held["low"] > count + ROUNDING) | (held["high"] < count - ROUNDING)).sum()),
        "width": float((held["high"] - held["low"]).mean()),
    }
