"""Robust accuracy from the margins of a few points: the paper's Algorithm 1 against all margins, and an attack."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from brittle.analysis import estimate_robust_accuracy
from studies.tables import Frame

SHARES = (1 / 4, 1 / 2, 1)
"""Sizes of the subsets as shares of the points with margins; the last is all of them, once."""

RESAMPLES = 20
"""Random subsets of each size."""

CONFIDENCE = 0.95

Row = dict[str, Any]


def from_few(points: Frame, everything: Frame, standard: NDArray[np.bool_], epsilon: float, seed: int) -> list[Row]:
    """Return a row for each size of subset: the error of three answers, over random subsets of `points`.

    `points` have margins and are the first of `everything`. Parts of them are set against the robust accuracy by the
    margins of them all; all of them against `attacked`, the share of everything that is right and withstands the
    descent. `truth` is the one or the other. `estimate` is Algorithm 1, `rectified` the library's correction of it, and
    `counted` the share of the subset alone that is right with a larger margin: what the margins say without any logit
    margin. Each has its mean absolute error; `most` is the largest of the estimate, `held` the share of intervals that
    hold the truth. `by_margins` and `by_attack` are the robust accuracy of the first of `points`, those of `standard`,
    `tried` of them, by margins and by whether they withstand AutoAttack's standard set (figure 8).
    """
    margin = np.full(len(everything), np.nan)
    margin[: len(points)] = points["margin"].to_numpy()
    score, correct, robust = (everything[name].to_numpy() for name in ("logit_margin", "right", "robust"))
    large = (points["right"] & (points["margin"] > epsilon)).to_numpy()
    by_margins = float(large.mean())
    attacked = float(robust.mean())
    facts = {
        "epsilon": epsilon, "all": len(everything), "attacked": attacked,
        "tried": len(standard), "by_margins": float(large[: len(standard)].mean()) if len(standard) else np.nan,
        "by_attack": float(standard.mean()) if len(standard) else np.nan,
    }  # fmt: skip
    rows = []
    for share in SHARES:
        size = round(share * len(points))
        generator = np.random.default_rng([seed, size])
        part = share < 1
        truth, among = (by_margins, len(points)) if part else (attacked, len(everything))
        estimates = [
            estimate_robust_accuracy(
                margin[:among], score[:among], correct[:among], epsilon,
                generator.choice(len(points), size, replace=False), CONFIDENCE,
            )
            for _ in range(RESAMPLES if part else 1)
        ]  # fmt: skip
        answers = {
            "estimate": np.array([estimate.estimate for estimate in estimates]),
            "rectified": np.array([estimate.rectified for estimate in estimates]),
            "counted": np.array([estimate.subset for estimate in estimates]),
        }
        errors = {f"{name}_error": float(np.abs(value - truth).mean()) for name, value in answers.items()}
        rows.append(
            facts
            | {"size": size, "share": share, "among": among, "truth": truth}
            | errors
            | {
                "estimate": float(answers["estimate"].mean()),
                "most": float(np.abs(answers["estimate"] - truth).max()),
                "held": float(np.mean([estimate.low <= truth <= estimate.high for estimate in estimates])),
            }
        )
    return rows
