"""Means over networks, with intervals by the bootstrap over networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from studies.tables import Frame

RESAMPLES = 2000
CONFIDENCE = 0.95
FEWEST = 8
"""Networks below which no interval is given: over fewer those of the bootstrap are too short."""


def mean_interval(values: NDArray[np.float64], seed: int) -> tuple[float, float, float]:
    """Return the mean of one number of each network, and the percentile interval of the bootstrap over networks."""
    mean = float(values.mean()) if len(values) else np.nan
    if len(values) < FEWEST:
        return mean, np.nan, np.nan
    drawn: Any = {"random_state": np.random.default_rng(seed)}  # the name that older SciPy knows, too
    bootstrap = stats.bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, confidence_level=CONFIDENCE, method="percentile", **drawn
    )
    return mean, float(bootstrap.confidence_interval.low), float(bootstrap.confidence_interval.high)


def over_networks(
    frame: Frame, keys: Sequence[str], means: Sequence[str], ratios: Sequence[str], seed: int
) -> pd.DataFrame:
    """One row for each value of `keys` of a frame with a row for each network.

    Columns `NAME`, `NAME_low` and `NAME_high` hold the mean of each of `means` and the geometric mean of each of
    `ratios`, with their intervals; networks without a number are left out of that mean.
    """
    rows = []
    for key, group in frame.groupby(list(keys), sort=False):
        row: dict[str, object] = dict(zip(keys, key, strict=True))
        row["networks"] = group["network"].nunique()
        for name in (*means, *ratios):
            values = group[name].to_numpy(dtype=np.float64)
            values = values[np.isfinite(values)]
            if name in ratios:
                interval = tuple(map(float, np.exp(mean_interval(np.log(values[values > 0]), seed))))
            else:
                interval = mean_interval(values, seed)
            row |= dict(zip((name, f"{name}_low", f"{name}_high"), interval, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def sums(frame: Frame, keys: Sequence[str], names: Sequence[str]) -> Frame:
    """Return the sums over networks of the columns `names`, for each value of `keys`."""
    return frame.groupby(list(keys), sort=False)[list(names)].sum().reset_index()
