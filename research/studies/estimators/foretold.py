"""Quality of scores as predictors of weak points, from the measured tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.ranks import auc, kendall, spearman
from studies.tables import Frame

CONFIDENT = 0.8
"""Probability from which a prediction is confident (Yang et al., TMLR 2023, section 4.2)."""

FEWEST = 5
"""Points of either kind below which no AUC is given."""


def above_the_median(outcome: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the points above the median of those without NaN, or at the median where none is above."""
    middle = np.nanmedian(outcome)
    above = outcome > middle
    return above if above.any() else outcome == middle


def foretold(scores: Frame, outcomes: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Return how well each score predicts each outcome (larger where weaker, NaN where not measured).

    A point is weak where its outcome is above the median, or is the median where none is above it; `auc` is the
    probability that a weak point has the lower score, ties half; `spearman` and `kendall` are rank correlations of the
    score with the outcome, 1 where the order is right.
    """
    rows = []
    for outcome, weak in outcomes.items():
        looked = ~np.isnan(weak)
        positive = above_the_median(weak)
        for name in [name for name in scores.columns if not name.endswith(" passes")]:
            score = scores[name].to_numpy()
            usable = looked & np.isfinite(score)
            area = auc(score[usable], positive[usable], FEWEST)
            order = [
                rank(score[usable], -weak[usable]) if np.isfinite(area) else np.nan for rank in (spearman, kendall)
            ]
            passes = float(scores[f"{name} passes"].mean())
            rows.append((name, outcome, int(usable.sum()), int(positive[usable].sum()), passes, area, *order))
    return pd.DataFrame(rows, columns=["score", "outcome", "points", "weak", "passes", "auc", "spearman", "kendall"])


def flips_of_confident(scores: Frame, flip: NDArray[np.float64]) -> tuple[int, float, float]:
    """Return the number of confident points, and the mean flips of those with the smallest and largest Laplacian.

    Source: Yang et al., table 1, with a quarter in the place of 50 of 1,000.
    """
    if "laplacian" not in scores:
        return 0, np.nan, np.nan
    confident = (
        scores[: len(flip)].assign(flip=flip).query(f"max_probability >= {CONFIDENT}").dropna(subset="laplacian")
    )
    ordered = confident.sort_values("laplacian", kind="stable")["flip"].to_numpy()
    quarter = len(ordered) // 4
    if not quarter:
        return len(ordered), np.nan, np.nan
    return len(ordered), float(ordered[:quarter].mean()), float(ordered[-quarter:].mean())
