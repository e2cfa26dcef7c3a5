"""Whether a score can stand in for the distance, point by point and for the robust accuracy of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from brittle.analysis.columns import Column
from brittle.analysis.detection import GOOD_AUROC, detection_curve
from brittle.analysis.robust_accuracy import (
    EstimatedRobustAccuracy,
    RobustAccuracy,
    direct_robust_accuracy,
    estimate_robust_accuracy,
    subset_study,
)
from brittle.analysis.worst_case import safer, worst_case_table
from brittle.report.case import Case
from brittle.report.summary import Grid, Number, StandIn, Subset
from brittle.report.wording import MISSING, fixed, interval, percent, percent_interval, plural, shown

PREFERRED = "logit_margin"
"""The score that the page speaks of where the run holds it."""

MAX_DOTS = 1200
"""Points drawn in the scatter plot."""

MAX_CURVES = 6
"""Scores whose detection is drawn."""

AFFORDABLE = 0.1
"""A score is an alternative to attacks where it costs at most this share of their passes."""

MIN_POINTS = 40
"""Points below which no subset is taken."""

MIN_STUDIED = 200
"""Points below which subset sizes are not compared."""

LARGEST_SUBSET = 500
"""The subset is a quarter of the points, at most this many."""

SIZES = (50, 100, 200, 500, 1000)
"""Subset sizes that are compared, up to half of the points."""

_SCATTER = ["margin", "value", "side", "title", "chosen"]
_DETECTION = ["title", "score", "epsilon", "auroc", "auroc_low", "auroc_high", "main", "chosen"]
_HEAD = ("Score", "Kendall's tau", "AUROC", "AUPR", "FPR at 95% TPR", "Points")
_STUDY_HEAD = ("Distances read", "Mean estimate", "Mean error", "Largest error", "Intervals that hold it", "Subsets")


def compare_scores(case: Case) -> pd.DataFrame:
    """Every score of the run against the distance: the frame of `worst_case_table`."""
    return worst_case_table(case.subject.table, case.epsilon.value, case.norm)


def summarize_stand_in(case: Case, frame: pd.DataFrame) -> StandIn:
    """The section on scores that may stand in for the distance; `frame` compares them."""
    main = _main(case, frame)
    if main is None:
        empty = pd.DataFrame(columns=_SCATTER), pd.DataFrame(columns=_DETECTION)
        return StandIn(*empty, _grid(case, frame), "This run holds no score beside the input margin.", "")
    row = next(row for row in frame.to_dict("records") if row["score"] == main.label)
    detected = _detection(case, frame, main)
    return StandIn(
        scatter=_scatter(case, main),
        detection=detected,
        grid=_grid(case, frame),
        conclusion=_conclusion(row) + _alternative(case, frame, row),
        note=_note(case, main, len(set(detected["title"])), len(frame)),
    )


def _by_label(case: Case) -> dict[str, Column]:
    return {column.label: column for column in case.subject.columns}


def _main(case: Case, frame: pd.DataFrame) -> Column | None:
    """The score that the page speaks of: the logit margin, or else the most consistent."""
    known = _by_label(case)
    found = [known[label] for label in frame["score"]]
    return next((column for column in found if column.score == PREFERRED), found[0] if found else None)


def _scatter(case: Case, main: Column) -> pd.DataFrame:
    pairs = pd.DataFrame({"margin": case.margin.value, "value": safer(main)})
    pairs = pairs[np.isfinite(pairs).all(axis=1)].reset_index(drop=True)
    pairs = pairs.iloc[:: max(-(-len(pairs) // MAX_DOTS), 1)]
    within = pairs["margin"] <= case.epsilon.value
    return pairs.assign(
        side=np.where(within, "within epsilon", "beyond epsilon"), title=_title(main), chosen=case.epsilon.value
    )


def _title(column: Column) -> str:
    """The score as its axis names it; one that is smaller where safer is drawn with the other sign."""
    values = safer(column)
    turned = values is not None and not values.equals(column.value)
    return ("minus " if turned else "") + shown(column.variant, 40)


def _detection(case: Case, frame: pd.DataFrame, main: Column) -> pd.DataFrame:
    """AUROC over perturbation sizes: of `main`, and of others in the form that orders the points best."""
    known = _by_label(case)
    best = {main.score: main}
    for label in frame["score"]:
        best.setdefault(known[label].score, known[label])
    curves = [_curve(case, column, column is main) for column in list(best.values())[:MAX_CURVES]]
    return pd.DataFrame(pd.concat(curves, ignore_index=True).dropna(subset=["auroc"]), columns=_DETECTION)


def _curve(case: Case, column: Column, main: bool) -> pd.DataFrame:
    values = np.asarray(safer(column), dtype=np.float64)
    found = detection_curve(case.margin.value, values, confidence=case.subject.confidence)
    return found.assign(title=shown(column.label, 30), score=column.score, main=main, chosen=case.epsilon.value)


def _grid(case: Case, frame: pd.DataFrame) -> Grid:
    known = _by_label(case)
    cells = tuple(
        (
            shown(row["score"], 60),
            *(_measured(row, name) for name in ("tau", "auroc", "aupr", "fpr95")),
            f"{row['points']:,}",
        )
        for row in frame.to_dict("records")
    )
    scores = tuple(known[label].score for label in frame["score"])
    return Grid(_HEAD, (False, *[True] * 5), cells, scores)


def _measured(row: dict[Any, Any], name: str) -> str:
    if np.isnan(row[name]):
        return MISSING
    return f"{fixed(row[name])}\n{interval(row[f'{name}_low'], row[f'{name}_high'])}"


def _conclusion(row: dict[Any, Any]) -> str:
    if isinstance(row["reason"], str):
        return row["reason"]
    if row["auroc_low"] >= GOOD_AUROC:
        verdict = "it may stand in for the distance where points of this model are to be ranked or screened"
    elif row["auroc_high"] < GOOD_AUROC:
        verdict = "it misses too many fragile points of this model to stand in for the distance"
    else:
        verdict = "these points do not decide whether it can stand in for the distance"
    return (
        f"{shown(row['score'], 60)} orders the points with a tau of {fixed(row['tau'])} and detects the fragile ones "
        f"with an AUROC of {fixed(row['auroc'])}: {verdict}."
    )


def _alternative(case: Case, frame: pd.DataFrame, row: dict[Any, Any]) -> str:
    """The score that detects clearly better for a small part of the attacks' price, as a sentence; empty for none."""
    known = _by_label(case)
    most = AFFORDABLE * case.margin.cost
    cheap = [other for other in frame.to_dict("records") if known[other["score"]].cost <= most]
    better = [one for one in cheap if one["auroc_low"] > row["auroc"] and one["auroc"] > row["auroc_high"]]
    if not better:
        return ""
    best = max(better, key=lambda one: one["auroc"])
    passes = f"{known[best['score']].cost:,.0f}"
    return (
        f" {shown(best['score'], 60)} does clearly better, with an AUROC of {fixed(best['auroc'])}, for {passes} "
        f"{'pass' if passes == '1' else 'passes'} a point instead of {known[row['score']].cost:,.0f}."
    )


def _note(case: Case, main: Column, drawn: int, compared: int) -> str:
    left = compared - drawn
    return " ".join(
        part
        for part in (
            f"Left, {_title(main)} against the distance, one dot per point with a finite distance, of more than "
            f"{MAX_DOTS:,} a regular selection. Right, AUROC if another epsilon were chosen, with "
            f"the {percent(case.subject.confidence)} interval of {shown(main.label, 60)}.",
            _drawn_text(drawn, left),
            f"The dashed lines are epsilon = {case.epsilon.text}.",
        )
        if part
    )


def _drawn_text(drawn: int, left: int) -> str:
    """Which of the scores are drawn, where some are not."""
    if not left:
        return ""
    others = f", and of the others the {drawn - 1:,} with the largest tau, each by its best parameters" * (drawn > 1)
    return f"Drawn is that score{others}; {plural(left, 'further score')} in the table only."


def summarize_subset(case: Case, frame: pd.DataFrame) -> Subset:
    """The section on robust accuracy from a subset; `frame` compares the scores."""
    main = _main(case, frame)
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
    epsilon, confidence = case.epsilon.value, case.subject.confidence
    full = direct_robust_accuracy(margin, correct, epsilon, confidence)
    estimated = estimate_robust_accuracy(margin, score, correct, epsilon, chosen, confidence)
    return Subset(
        numbers=_subset_numbers(case, main, full, estimated),
        study=Grid(_STUDY_HEAD, empty.numeric, _study_rows(case, complete)),
        conclusion=_subset_conclusion(full, estimated),
    )


def _complete(case: Case, main: Column) -> pd.DataFrame:
    """The points with a margin, a score and a label: `margin`, `score`, `correct`."""
    frame = pd.DataFrame({"margin": case.margin.value, "score": safer(main), "correct": case.correct})
    return frame.dropna().reset_index(drop=True)


def _subset_numbers(
    case: Case, main: Column, full: RobustAccuracy, estimated: EstimatedRobustAccuracy
) -> tuple[Number, ...]:
    return (
        Number(
            f"By all {full.points:,} distances",
            percent(full.robust_accuracy),
            f"{percent_interval(full.low, full.high)}. Right, and no other decision found within {case.epsilon.text}.",
        ),
        Number(
            f"By {estimated.subset_points:,} distances and every {shown(main.variant, 40)}",
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


def _study_rows(case: Case, complete: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
    if len(complete) < MIN_STUDIED:
        return ()
    frame = subset_study(
        complete["margin"].to_numpy(),
        complete["score"].to_numpy(),
        complete["correct"].to_numpy(),
        case.epsilon.value,
        sizes=[size for size in SIZES if size <= len(complete) // 2],
        confidence=case.subject.confidence,
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
