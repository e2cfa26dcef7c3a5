"""Robust accuracy from the margins of a few points: the paper's Algorithm 1 against an attack on all points."""

from __future__ import annotations

from typing import Any

import numpy as np

from brittle.analysis import estimate_robust_accuracy
from studies.tables import Frame

SHARES = (1 / 4, 1 / 2, 1)
"""Of the points with margins: the sizes of the subsets; the last is all of them, once."""

RESAMPLES = 20
"""Random subsets of each size."""

CONFIDENCE = 0.95

Row = dict[str, Any]


def from_few(points: Frame, everything: Frame, epsilon: float, seed: int) -> list[Row]:
    """A row for each size of subset: the error of three answers against `attacked`, over random subsets.

    `points` have margins and are the first of `everything`; `attacked` is the share of everything that is right and
    withstands the descent. `estimate` is Algorithm 1, `rectified` the library's correction of it, and `counted` the
    share of the subset alone that is right with a larger margin: what the margins say without any logit margin. Each
    has its mean absolute error; `most` is the largest of the estimate, `held` the share of intervals that hold
    `attacked`. `by_margins` and `by_attack` are the robust accuracy of the points with margins, both ways (figure 8).
    """
    margin = np.full(len(everything), np.nan)
    margin[: len(points)] = points["margin"].to_numpy()
    score, right = everything["logit_margin"].to_numpy(), everything["right"].to_numpy()
    robust = everything["robust"].to_numpy()
    attacked = float(robust.mean())
    own = {
        "epsilon": epsilon, "all": len(everything), "attacked": attacked,
        "by_margins": float((points["right"] & (points["margin"] > epsilon)).mean()),
        "by_attack": float(robust[: len(points)].mean()),
    }  # fmt: skip
    rows = []
    for share in SHARES:
        size = round(share * len(points))
        generator = np.random.default_rng([seed, size])
        repeats = RESAMPLES if size < len(points) else 1
        found = [
            estimate_robust_accuracy(
                margin, score, right, epsilon, generator.choice(len(points), size, replace=False), CONFIDENCE
            )
            for _ in range(repeats)
        ]
        answers = {
            "estimate": np.array([one.estimate for one in found]),
            "rectified": np.array([one.rectified for one in found]),
            "counted": np.array([one.subset for one in found]),
        }
        errors = {f"{name}_error": float(np.abs(value - attacked).mean()) for name, value in answers.items()}
        rows.append(
            own
            | {"size": size, "share": share, "repeats": repeats, "estimate": float(answers["estimate"].mean())}
            | errors
            | {
                "most": float(np.abs(answers["estimate"] - attacked).max()),
                "held": float(np.mean([one.low <= attacked <= one.high for one in found])),
            }
        )
    return rows
