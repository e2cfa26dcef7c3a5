"""Robust accuracy from the distances of a few points and a score of all."""

from __future__ import annotations

import numpy as np
import pandas as pd

from brittle.analysis.robust_accuracy import (
    EstimatedRobustAccuracy,
    RobustAccuracy,
    direct_robust_accuracy,
    estimate_robust_accuracy,
    subset_study,
)
from brittle.analysis.worst_case import safer
from brittle.report.chapters.worst_case.case import MarginCase
from brittle.report.chapters.worst_case.result import Subset
from brittle.report.chapters.worst_case.stand_in import main_score
from brittle.report.parts import Grid, Number
from brittle.report.wording import percent, percent_interval, plural, show
from brittle.store.columns import Column

MIN_POINTS = 40
"""Points below which no subset is taken."""

MIN_STUDIED = 200
"""Points below which subset sizes are not compared."""

LARGEST_SUBSET = 500
"""The subset is a quarter of the points, at most this many."""

SIZES = (50, 100, 200, 500, 1000)
"""Subset sizes that are compared, up to half of the points."""

_STUDY_HEAD = ("Distances read", "Mean estimate", "Mean error", "Largest error", "Intervals that hold it", "Subsets")


def summarize_subset(case: MarginCase, frame: pd.DataFrame) -> Subset:
    """The section on robust accuracy from a subset; `frame` compares the scores."""
    main = main_score(case, frame)
    empty = Grid(_STUDY_HEAD, (True,) * len(_STUDY_HEAD), ())
    if main is None or not case.labelled:
        lacking = "label" if main is not None else "score beside the input margin"
        return Subset((), empty, f"This run holds no {lacking}, so there is nothing to estimate.")
    complete = _complete(case, main)
    if len(complete) < MIN_POINTS:
        verb = "is" if len(complete) == 1 else "are"
        return Subset((), empty, f"{plural(len(complete), 'point')} {verb} too few to set a subset apart.")
    margin, score, correct = (complete[name].to_numpy() for name in ("margin", "score", "correct"))
    size = min(len(complete) // 4, LARGEST_SUBSET)
    chosen = np.random.default_rng(0).choice(len(complete), size, replace=False)
    epsilon, confidence = case.epsilon.value, case.contents.confidence
    full = direct_robust_accuracy(margin, correct, epsilon, confidence)
    estimated = estimate_robust_accuracy(margin, score, correct, epsilon, chosen, confidence)
    return Subset(
        numbers=_subset_numbers(case, main, full, estimated),
        study=Grid(_STUDY_HEAD, empty.numeric, _study_rows(case, complete)),
        conclusion=_subset_conclusion(full, estimated),
    )


def _complete(case: MarginCase, main: Column) -> pd.DataFrame:
    """The points with a margin, a score and a label: `margin`, `score`, `correct`."""
    frame = pd.DataFrame({"margin": case.margin.value, "score": safer(main), "correct": case.correct})
    return frame.dropna().reset_index(drop=True)


def _subset_numbers(
    case: MarginCase, main: Column, full: RobustAccuracy, estimated: EstimatedRobustAccuracy
) -> tuple[Number, ...]:
    return (
        Number(
            f"By all {full.points:,} distances",
            percent(full.robust_accuracy),
            f"{percent_interval(full.low, full.high)}. Right, and no other decision found within {case.epsilon.text}.",
        ),
        Number(
            f"By {estimated.subset_points:,} distances and every {show(main.variant, 40)}",
            percent(_standing(estimated)),
            f"{percent_interval(estimated.low, estimated.high)}. {_how(estimated)}",
        ),
    )


def _standing(estimated: EstimatedRobustAccuracy) -> float:
    """The estimate, or where the score is too poor for it the one corrected by its error on the subset."""
    return estimated.estimate if estimated.credible else estimated.rectified


def _how(estimated: EstimatedRobustAccuracy) -> str:
    above = f"Right, and a score above {estimated.threshold:.3g}, the threshold that the subset suggests"
    if estimated.credible:
        return f"{above}."
    return (
        f"{above}: {percent(estimated.estimate)}, which its own error on the subset contradicts and corrects to this."
    )


def _subset_conclusion(full: RobustAccuracy, estimated: EstimatedRobustAccuracy) -> str:
    distance = 100.0 * abs(_standing(estimated) - full.robust_accuracy)
    inside = estimated.low <= full.robust_accuracy <= estimated.high
    verdict = "within its interval, so the subset would have done" if inside else "outside its interval"
    return f"The estimate is {distance:.1f} percentage points from the measured share, {verdict}."


def _study_rows(case: MarginCase, complete: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
    if len(complete) < MIN_STUDIED:
        return ()
    frame = subset_study(
        complete["margin"].to_numpy(),
        complete["score"].to_numpy(),
        complete["correct"].to_numpy(),
        case.epsilon.value,
        sizes=[size for size in SIZES if size <= len(complete) // 2],
        confidence=case.contents.confidence,
    )
    return tuple(
        (
            f"{int(row['size']):,}",
            percent(row["estimate"]),
            percent(row["mean_error"]),
            percent(row["max_error"]),
            percent(row["covered"]),
            f"{int(row['resamples'])}",
        )
        for row in frame.to_dict("records")
    )
