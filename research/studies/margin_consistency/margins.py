"""The library's side: input margins and the scores of one pass at every point, and a pseudo-margin."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from scipy.spatial.distance import pdist
from torch import Tensor, nn

import brittle
from brittle.errors import ModelError
from brittle.extensions.detector.surrogate import Form
from brittle.scores import (
    FeatureDistance,
    FeatureMargin,
    FirstOrderMargin,
    InputMargin,
    LogitMargin,
    MaxProbability,
    ProbabilityMargin,
    Score,
)

SCORES = ("logit_margin", "feature_margin", "probability_margin", "max_probability", "first_order_margin")
"""Proxies of the input margin: one pass each, the last one a pass backward for each class."""


def margins(network: nn.Module, x: Tensor, y: Tensor, norm: str, effort: str, seed: int) -> pd.DataFrame:
    """Return per point `margin`, infinite where nothing was found, `status`, the scores, and `right`.

    `feature_margin` and `feature_distance` are NaN where the network does not end in a linear layer.
    """
    classifier = brittle.Classifier(network, bounds=(0, 1))
    scores: dict[str, Score] = {
        "margin": InputMargin(norm, effort=effort), "logit_margin": LogitMargin(),
        "probability_margin": ProbabilityMargin(), "max_probability": MaxProbability(),
        "first_order_margin": FirstOrderMargin(norm),
    }  # fmt: skip
    features: dict[str, Score] = {
        "feature_margin": FeatureMargin(norm), "feature_distance": FeatureDistance(norm, effort=effort),
    }  # fmt: skip
    if has_head(network, x):
        scores |= features
    table = brittle.score(classifier, x, [*scores.values()], seed=seed, most_failures=None)
    columns = pd.DataFrame({name: table[score].value.to_numpy(np.float64) for name, score in scores.items()})
    for name in features:
        columns[name] = columns.get(name, np.nan)
    rows = table[scores["margin"]].rows
    with torch.no_grad():
        correct = (network(x).argmax(1) == y).numpy()
    return columns.assign(status=rows["status"].to_numpy(), passes=rows["passes"].to_numpy(), right=correct)


def has_head(network: nn.Module, x: Tensor) -> bool:
    """Return whether the logits are the output of the last linear layer."""
    try:
        brittle.Classifier(network, bounds=(0, 1)).observe(x[:1])
    except ModelError:
        return False
    return True


def head_distances(network: nn.Module, x: Tensor) -> pd.DataFrame:
    """`||w_i - w_j||_2` of all pairs of rows of the last linear layer; empty where there is none (figure 13)."""
    if not has_head(network, x):
        return pd.DataFrame({"distance": np.array([], dtype=np.float64)})
    weight = brittle.Classifier(network, bounds=(0, 1)).head.weight
    return pd.DataFrame({"distance": pdist(weight.detach().double().numpy())})


def scores_of_all(network: nn.Module, x: Tensor, y: Tensor, seed: int) -> pd.DataFrame:
    """Return the logit margin of each point, and whether it is right."""
    classifier, score = brittle.Classifier(network, bounds=(0, 1)), LogitMargin()
    values = brittle.score(classifier, x, [score], seed=seed, most_failures=None)[score].value.to_numpy(np.float64)
    with torch.no_grad():
        return pd.DataFrame({"logit_margin": values, "right": (network(x).argmax(1) == y).numpy()})


def pseudo_margins(network: nn.Module, learned: Tensor, x: Tensor, norm: str, effort: str, seed: int) -> pd.DataFrame:
    """Pseudo-margins at `x` that the margins of the points `learned` taught.

    `features` reads the features alone, as the paper does; `features and head` reads the head's margins as well.
    """
    classifier = brittle.Classifier(network, bounds=(0, 1))
    table = brittle.score(classifier, learned, [InputMargin(norm, effort=effort)], seed=seed, most_failures=None)
    columns = {}
    forms: dict[str, Form] = {"features": "paper", "features and head": "head"}
    for name, form in forms.items():
        taught = brittle.Surrogate.fit_run(table, classifier, learned, norm=norm, seed=seed, form=form)
        column = brittle.score(classifier, x, [taught.score], seed=seed, most_failures=None)[taught.score]
        columns[name] = column.value.to_numpy(np.float64)
    return pd.DataFrame(columns)
