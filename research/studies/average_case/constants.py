"""Constants that the bounds of the propositions need, from the measured curvatures."""

from __future__ import annotations

import numpy as np
import pandas as pd

from studies.average_case.estimating import MMSE_, TAYLOR
from studies.counting import exact_interval
from studies.ranks import spearman

FEWEST = 5
"""Smallest number of informative points for a statement on a network."""

SUFFIXES = {TAYLOR: "", MMSE_: "_mmse"}
"""Suffixes of the bounds of each estimator."""


def needed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the `k` that the bounds need over informative points: a row for `taylor` and one for `mmse`.

    The frame has the columns of `bounds`, the two estimates, `flips` and `draws`. A point tells where the exact
    interval of the count does not hold the estimate. `product_range` and `sum_range` are the decades between the 10%
    and the 90% quantile of the `k` that each point needs; `product_zero` and `sum_zero` are the shares of points whose
    bound is zero, for which no `k` is enough.
    """
    return pd.DataFrame([{"estimator": name} | _needed(frame.dropna(subset=name), name) for name in SUFFIXES])


def _needed(frame: pd.DataFrame, estimator: str) -> dict[str, float]:
    draws = frame["draws"].to_numpy()
    low, high = exact_interval(frame["flips"].to_numpy(), int(draws.max(initial=1)))
    off = 1 - frame[estimator].to_numpy()
    tells = (off < low) | (off > high)
    error = np.abs(off - frame["flips"].to_numpy() / draws)[tells]
    result: dict[str, float] = {"points": int(tells.sum()), "margins": int(frame["margins"].to_numpy().max(initial=0))}
    for name in ("product", "sum"):
        bound = frame[f"{name}{SUFFIXES[estimator]}"].to_numpy()[tells]
        exponents = np.log10(error) - bound
        result[f"{name}_zero"] = float(np.isposinf(exponents).mean()) if len(exponents) else np.nan
        exponents = exponents[np.isfinite(exponents)]
        ends = np.quantile(exponents, [0.1, 0.5, 0.9]) if len(exponents) >= FEWEST else np.full(3, np.nan)
        result |= {f"{name}_middle": ends[1], f"{name}_range": ends[2] - ends[0]}
        result[f"{name}_rank"] = spearman(error, bound) if len(error) >= FEWEST else np.nan
    return result
