"""The library's scores of each point: the Laplacian, the moments of the change, their bound, and confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from torch import Tensor, nn

import brittle
from brittle.noise import Sphere
from brittle.scores import (
    ChangeBound,
    Entropy,
    FirstOrderChange,
    Laplacian,
    LogitMargin,
    MaxProbability,
    ProbabilityChange,
    ProbabilityMargin,
    Score,
)

PROBES = 32
"""Random directions of the Laplacian's second term, the library's default."""

CONFIDENCE = 0.99
"""Confidence of the library's intervals."""

BENT = "bends"
"""Detail of a Laplacian where the network is not piecewise linear."""


def score_all(network: nn.Module, x: Tensor, scores: Sequence[Score], seed: int) -> Any:
    """Return the library's table of these scores; points that fail have no number."""
    classifier = brittle.Classifier(network, bounds=(0, 1))
    return brittle.score(classifier, x, scores, seed=seed, confidence=CONFIDENCE, most_failures=None)


def laplacians(table: Any, score: Laplacian) -> pd.DataFrame:
    """`laplacian`, its standard error over the probes, whether the network bends and whether the point is a kink."""
    rows = table[score].rows
    half = (rows["high"] - rows["low"]).to_numpy(dtype=np.float64) / 2
    return pd.DataFrame({
        "laplacian": rows["value"].to_numpy(dtype=np.float64),
        "laplacian_se": half / special.stdtrit(PROBES - 1, (1 + CONFIDENCE) / 2),
        "bends": [BENT in str(text) for text in rows["detail"]],
        "kink": [str(status) == "kink" for status in rows["status"]],
        "passes": rows["passes"].to_numpy(dtype=np.float64),
    })  # fmt: skip


def score_points(network: nn.Module, x: Tensor, seed: int) -> pd.DataFrame:
    """Return the scores that know of no noise, a row a point."""
    laplacian = Laplacian(probes=PROBES)
    plain = {
        "max_probability": MaxProbability(), "probability_margin": ProbabilityMargin(), "logit_margin": LogitMargin(),
        "entropy": Entropy(),
    }  # fmt: skip
    table = score_all(network, x, [laplacian, *plain.values()], seed)
    columns = {name: table[score].rows["value"].to_numpy(dtype=np.float64) for name, score in plain.items()}
    return laplacians(table, laplacian).assign(**columns)


def score_changes(network: nn.Module, x: Tensor, radii: Sequence[float], draws: int, seed: int) -> pd.DataFrame:
    """Return the library's scores of the change on the sphere of each radius, a row per point and radius.

    `mean`, `variance`, `absolute`: sampled. `tangent_variance`, `tangent_absolute`: from the gradient alone. `bound`:
    at least `absolute` for the second-order model, Yang et al., equation 7, corrected; `bound_high`: the upper end of
    its interval, as the sum over the Hessian is estimated from some of its columns.
    """
    scores: dict[tuple[float, str], Score] = {}
    for radius in radii:
        noise = Sphere.of_radius(radius, x[0].numel())
        for statistic in ("mean", "variance", "absolute"):
            scores[radius, statistic] = ProbabilityChange(noise=noise, draws=draws, statistic=statistic)
        for statistic in ("variance", "absolute"):
            scores[radius, f"tangent_{statistic}"] = FirstOrderChange(noise=noise, statistic=statistic)
        scores[radius, "bound"] = ChangeBound(noise=noise)
    table = score_all(network, x, [*scores.values()], seed)
    frames = []
    for radius in radii:
        columns = {
            name: table[score].rows["value"].to_numpy(dtype=np.float64)
            for (of, name), score in scores.items()
            if of == radius
        }
        high = table[scores[radius, "bound"]].rows["high"].to_numpy(dtype=np.float64)
        frames.append(pd.DataFrame({"radius": radius, "point": range(len(x)), **columns, "bound_high": high}))
    return pd.concat(frames, ignore_index=True)
