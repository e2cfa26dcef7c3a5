"""Errors of each estimator at each budget, on one network and noise level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.counting import error_of_counting, exact_interval
from studies.ranks import kendall, spearman
from studies.tables import Frame

ROUNDING = 1e-12
"""Largest width that is no interval."""


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
        has_value = np.isfinite(group["p_robust"].to_numpy())
        valued = group[has_value]
        truth = flip[valued["point"].to_numpy()]
        off = valued["p_robust"].to_numpy() - (1 - truth)
        passes = float(group["passes"].mean())
        error = float(np.abs(off).mean()) if len(off) else np.nan
        base = error_of_counting(truth, passes - 1, reference) if len(off) else 0.0
        row: dict[str, Any] = dict(zip(keys, key, strict=True)) | {
            "points": len(valued),
            "passes": passes,
            "error": error,
            "ratio": error / base if base > 0 else np.nan,
            "bias": float(off.mean()) if len(off) else np.nan,
            "spearman": spearman(valued["p_robust"], -truth),
            "kendall": kendall(valued["p_robust"], -truth),
        }
        rows.append(row | _intervals(valued, flips, reference))
    return pd.DataFrame(rows)


def _intervals(valued: Frame, flips: NDArray[np.int64], reference: int) -> dict[str, Any]:
    """Count intervals; none where both ends are the value at every point, but a sure one may be 1 to 1."""
    held = valued[np.isfinite(valued["low"]) & np.isfinite(valued["high"])]
    if not (held["high"] - held["low"] > ROUNDING).any():
        return {"intervals": 0, "missed": 0, "outside": 0, "width": np.nan}
    counts = flips[held["point"].to_numpy()]
    low, high = exact_interval(counts, reference)
    count = 1 - counts / reference
    return {
        "intervals": len(held),
        "missed": int(((held["low"] > 1 - low) | (held["high"] < 1 - high)).sum()),
        "outside": int(((held["low"] > count + ROUNDING) | (held["high"] < count - ROUNDING)).sum()),
        "width": float((held["high"] - held["low"]).mean()),
    }
