"""Scores of a few passes, and further outcomes to predict: near counterexamples, corruption."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import brittle
from brittle.errors import BrittleError
from brittle.scores import (
    Entropy,
    FeatureMargin,
    FirstOrderMargin,
    InputMargin,
    Laplacian,
    LogitMargin,
    MaxProbability,
    ProbabilityMargin,
    Score,
    Taylor,
    TaylorMVS,
)
from studies.corruptions import corrupt_all, strengths

SEVERITY = 3
"""Severity of every corruption: the middle one."""


def free_scores(sigma: float) -> dict[str, Score]:
    """Return the scores by name; `sigma` is that of the two that know of noise."""
    return {
        "max_probability": MaxProbability(), "probability_margin": ProbabilityMargin(), "entropy": Entropy(),
        "logit_margin": LogitMargin(), "feature_margin": FeatureMargin(), "first_order_margin": FirstOrderMargin(),
        "taylor": Taylor(sigma), "taylor_mvs": TaylorMVS(sigma), "laplacian": Laplacian(),
    }  # fmt: skip


def score_points(network: nn.Module, x: Tensor, sigma: float, seed: int) -> tuple[pd.DataFrame, dict[str, str]]:
    """Each score at every point, larger where safer, and its passes as `NAME passes`; and why some have none.

    `laplacian` stands for its value, and `laplacian size` for minus its absolute value.
    """
    classifier = brittle.Classifier(network, bounds=(0, 1))
    columns, absent = pd.DataFrame(index=range(len(x))), {}
    for name, score in free_scores(sigma).items():
        try:
            column = brittle.score(classifier, x, [score], seed=seed, most_failures=None)[score]
        except BrittleError as error:
            absent[name] = str(error)
            continue
        values = column.rows["value"].to_numpy(dtype=np.float64)
        columns[name] = values if column.safer == "higher" else -values
        columns[f"{name} passes"] = column.rows["passes"].to_numpy()
        if name == "laplacian":
            columns["laplacian size"], columns["laplacian size passes"] = -np.abs(values), columns["laplacian passes"]
    return columns, absent


def distances(network: nn.Module, x: Tensor, seed: int) -> NDArray[np.float64]:
    """Return the L2 distance to the nearest input found with another prediction, by the fast search."""
    score = InputMargin(norm="l2", effort="fast")
    classifier = brittle.Classifier(network, bounds=(0, 1))
    return brittle.score(classifier, x, [score], seed=seed, most_failures=None)[score].value.to_numpy(np.float64)


@torch.no_grad()
def changed_by_corruption(network: nn.Module, x: Tensor, seed: int) -> NDArray[np.float64]:
    """Return the share of the corruptions that change the prediction of each point."""
    predicted, kinds = network(x).argmax(1), strengths(x.shape[1])
    changed = [network(corrupt_all(x, kind, SEVERITY, seed)).argmax(1) != predicted for kind in kinds]
    return torch.stack(changed).double().mean(0).numpy()
