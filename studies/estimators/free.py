"""Scores of one pass or a few, and what they are to foretell: flips, near counterexamples, corruption, mistakes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import brittle
from brittle.data.corruptions import CORRUPTIONS, corrupt, generator_for
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
from studies.ranks import auc, kendall, spearman
from studies.tables import Frame

SEVERITY = 3
"""Of every corruption: the middle one."""

CONFIDENT = 0.8
"""Probability from which a prediction is confident (Yang et al., TMLR 2023, section 4.2)."""

FEWEST = 5
"""Points of either kind below which no AUC is given."""

OUTCOMES = ("adversarial", "corruption", "wrong")
"""What scores are to foretell besides flips under noise, which are called `noise, LEVEL`."""


def free_scores(sigma: float) -> dict[str, Score]:
    """The scores by name; `sigma` is that of the two that know of noise."""
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
    found, absent = pd.DataFrame(index=range(len(x))), {}
    for name, score in free_scores(sigma).items():
        try:
            column = brittle.score(classifier, x, [score], seed=seed, most_failures=None)[score]
        except BrittleError as error:
            absent[name] = str(error)
            continue
        values = column.rows["value"].to_numpy(dtype=np.float64)
        found[name] = values if column.safer == "higher" else -values
        found[f"{name} passes"] = column.rows["passes"].to_numpy()
        if name == "laplacian":
            found["laplacian size"], found["laplacian size passes"] = -np.abs(values), found["laplacian passes"]
    return found, absent


def distances(network: nn.Module, x: Tensor, seed: int) -> NDArray[np.float64]:
    """The L2 distance to the nearest input found with another prediction, by the fast search."""
    score = InputMargin(norm="l2", effort="fast")
    classifier = brittle.Classifier(network, bounds=(0, 1))
    return brittle.score(classifier, x, [score], seed=seed, most_failures=None)[score].value.to_numpy(np.float64)


@torch.no_grad()
def changed_by_corruption(network: nn.Module, x: Tensor, seed: int) -> NDArray[np.float64]:
    """The share of the corruptions that change the prediction of each point."""
    own, changed, kinds = network(x).argmax(1), torch.zeros(len(x)), 0
    levels = (255 * x).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    for kind, how in CORRUPTIONS.items():
        if how.colour_only and levels.shape[-1] == 1:
            continue
        kinds += 1
        images = [corrupt(one, kind, SEVERITY, generator_for(seed, kind, SEVERITY, str(row))) for row, one in
                  enumerate(levels)]  # fmt: skip
        copies = torch.from_numpy(np.stack(images)).reshape(levels.shape).permute(0, 3, 1, 2).float() / 255
        changed += network(copies).argmax(1) != own
    return (changed / kinds).double().numpy()


def above_the_median(outcome: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which points are above the median of those without NaN; where none is, as where more than half are wrong, those
    that are at it."""
    middle = np.nanmedian(outcome)
    above = outcome > middle
    return above if above.any() else outcome == middle


def foretold(scores: Frame, outcomes: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """How well each score foretells each outcome (larger where weaker, NaN where it was not looked at).

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
            there = looked & np.isfinite(score)
            found = auc(score[there], positive[there], FEWEST)
            order = [rank(score[there], -weak[there]) if np.isfinite(found) else np.nan for rank in (spearman, kendall)]
            passes = float(scores[f"{name} passes"].mean())
            rows.append((name, outcome, int(there.sum()), int(positive[there].sum()), passes, found, *order))
    return pd.DataFrame(rows, columns=["score", "outcome", "points", "weak", "passes", "auc", "spearman", "kendall"])


def flips_of_confident(scores: Frame, flip: NDArray[np.float64]) -> tuple[int, float, float]:
    """Of confident points: how many, and the mean flip probability of the quarter with the smallest and the largest
    Laplacian (Yang et al., table 1, with a quarter in the place of 50 of 1,000)."""
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
