"""The library's estimates: the papers' estimators at every sigma, and many points at one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import brittle
from brittle.analysis import class_bias
from brittle.scores import MMSE, MMSEMVS, Moments, MonteCarlo, Score, Softmax, Taylor, TaylorMVS
from studies.average_case.sigmoid import SCALE
from studies.tables import Frame

TAYLOR, TAYLOR_MVS, TAYLOR_SCALED = "taylor", "taylor_mvs", "taylor_mvs, scaled"
MMSE_, MMSE_MVS, SOFTMAX = "mmse", "mmse_mvs", "softmax"

SHARE = 0.9
"""Mean `p_robust` at the sigma for questions about single points."""

ORDER = (MMSE_, MMSE_MVS, TAYLOR, TAYLOR_MVS, SOFTMAX)
"""The papers' estimators, in the order of their figures."""


def entrants(sigma: float, budgets: Sequence[int]) -> dict[tuple[str, int], Score]:
    """Return the papers' estimators at one sigma by name and draws, 0 for none; MMSE in the papers' own form."""
    scores_by_key: dict[tuple[str, int], Score] = {
        (TAYLOR, 0): Taylor(sigma),
        (TAYLOR_MVS, 0): TaylorMVS(sigma),
        (TAYLOR_SCALED, 0): TaylorMVS(sigma, factor=SCALE),
        (SOFTMAX, 0): Softmax(),
    }
    for draws in budgets:
        scores_by_key[MMSE_, draws] = MMSE(sigma, draws=draws, antithetic=False, form="linear")
        scores_by_key[MMSE_MVS, draws] = MMSEMVS(sigma, draws=draws, antithetic=False)
    return scores_by_key


def estimates(
    network: nn.Module, x: Tensor, sigmas: Sequence[float], budgets: Sequence[int], seed: int
) -> pd.DataFrame:
    """`p_robust` of every point: rows `sigma`, `estimator`, `draws`, `point`, `p_robust`, `passes`."""
    scores_by_setting = {(sigma, *key): score for sigma in sigmas for key, score in entrants(sigma, budgets).items()}
    classifier = brittle.Classifier(network, bounds=(0, 1))
    table = brittle.score(classifier, x, [*dict.fromkeys(scores_by_setting.values())], seed=seed, most_failures=None)
    parts = []
    for (sigma, estimator, draws), score in scores_by_setting.items():
        column = table[score]
        keys = {"sigma": sigma, "estimator": estimator, "draws": draws, "point": np.arange(len(x))}
        numbers = {"p_robust": column.p_robust.to_numpy(np.float64), "passes": column.rows["passes"].to_numpy()}
        parts.append(pd.DataFrame(keys | numbers))
    return pd.concat(parts, ignore_index=True)


COUNTED, NORMAL = "counted", "moments"
"""Columns of the points: by `MonteCarlo`, and by `Moments`, which orders points that no copy flips."""


def score_many(
    network: nn.Module, x: Tensor, y: Tensor, sigma: float, draws: dict[str, int], seed: int
) -> tuple[brittle.Table, dict[str, Score]]:
    """Return the run over many points, and its scores by name: counted, normal margins, the papers' MMSE, softmax."""
    scores: dict[str, Score] = {
        COUNTED: MonteCarlo(sigma, draws=draws[COUNTED], limit=None),
        NORMAL: Moments(sigma, draws=draws[NORMAL]),
        MMSE_: MMSE(sigma, draws=draws[MMSE_], antithetic=False, form="linear"),
        SOFTMAX: Softmax(),
    }
    classifier = brittle.Classifier(network, bounds=(0, 1))
    table = brittle.score(classifier, (x, y), [*scores.values()], seed=seed, most_failures=None)
    return table, scores


def points_of(table: brittle.Table, scores: dict[str, Score]) -> pd.DataFrame:
    """`label`, `predicted` and `p_robust` of each score, a row for each point."""
    columns = table.points.select(["label", "predicted"]).to_pandas()
    return columns.assign(**{name: table[score].p_robust.to_numpy(np.float64) for name, score in scores.items()})


def classes_of(table: brittle.Table, scores: dict[str, Score]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the means of each class, and one row with the test, by the library's analysis of class bias on counts.

    The second table holds `p_value`, corrected for the number of classes, the `spread` of the class means, and how
    many classes may be the least robust.
    """
    bias = class_bias(table, table[scores[COUNTED]])
    assert bias is not None
    points: Frame = points_of(table, scores)
    means = points.groupby("label")[[MMSE_, NORMAL]].mean()
    classes = bias.classes[["class", "points", "mean", "low", "high"]].join(means, on="class")
    spread = float(np.ptp(bias.classes["mean"].to_numpy()))
    row = {"p_value": bias.p_value, "differ": bias.differ, "spread": spread, "least": len(bias.least_robust),
           "classes": len(classes), "confidence": bias.confidence}  # fmt: skip
    return classes, pd.DataFrame([row])


def accuracy(network: nn.Module, x: Tensor, y: Tensor) -> float:
    """Return the share of correct predictions."""
    with torch.no_grad():
        return float((network(x).argmax(1) == y).double().mean())


def nearest_sigma(sigmas: NDArray[np.float64], holding: NDArray[np.float64], share: float) -> float:
    """Return the sigma whose mean `p_robust` is nearest to `share`; the smaller one where two are as near."""
    return float(sigmas[np.argmin(np.abs(holding - share))])
