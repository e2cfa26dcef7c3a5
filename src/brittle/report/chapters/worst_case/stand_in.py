"""Whether a score can stand in for the distance, point by point."""

from __future__ import annotations

import numpy as np
import pandas as pd

from brittle.analysis.detection import GOOD_AUROC, detection_curve
from brittle.analysis.worst_case import safer, worst_case_table
from brittle.report.chapters.worst_case.case import MarginCase
from brittle.report.chapters.worst_case.result import StandIn
from brittle.report.parts import Grid
from brittle.report.wording import MISSING, fixed, interval, percent, plural, show
from brittle.store.columns import Column, Row

PREFERRED = "logit_margin"
"""The score that the page speaks of where the run holds it."""

MAX_DOTS = 1200
"""Points drawn in the scatter plot."""

MAX_CURVES = 6
"""Scores whose detection is drawn."""

AFFORDABLE = 0.1
"""A score is an alternative to attacks where it costs at most this share of their passes."""

VACUOUS = 0.9
"""Width from which on an interval of a share says nothing, so that no number is given beside it."""

_SCATTER = ["margin", "value", "side", "title", "chosen"]
_DETECTION = ["title", "place", "epsilon", "auroc", "auroc_low", "auroc_high", "main", "chosen"]
_HEAD = ("Score", "Kendall's tau", "AUROC", "AUPR", "FPR at 95% TPR", "Points")


def compare_scores(case: MarginCase) -> pd.DataFrame:
    """Every score of the run against the distance: the frame of `worst_case_table`."""
    return worst_case_table(case.contents, case.epsilon.value, case.norm)


def summarize_stand_in(case: MarginCase, frame: pd.DataFrame) -> StandIn:
    """The section on scores that may stand in for the distance; `frame` compares them."""
    main = main_score(case, frame)
    if main is None:
        empty = pd.DataFrame(columns=_SCATTER), pd.DataFrame(columns=_DETECTION)
        return StandIn(*empty, _grid(case, frame), "This run holds no score beside the input margin.", "")
    row = next(row for row in frame.to_dict("records") if row["score"] == main.label)
    detected = _detection(case, frame, main)
    return StandIn(
        scatter=_scatter(case, main),
        detection=detected,
        grid=_grid(case, frame),
        conclusion=_conclusion(row, main.shown) + _alternative(case, frame, row),
        note=_note(case, main, len(set(detected["title"])), len(frame)),
    )


def _by_label(case: MarginCase) -> dict[str, Column]:
    return {column.label: column for column in case.contents.columns}


def main_score(case: MarginCase, frame: pd.DataFrame) -> Column | None:
    """The score that the page speaks of: the logit margin, or else the most consistent."""
    known = _by_label(case)
    found = [known[label] for label in frame["score"]]
    return next((column for column in found if column.score == PREFERRED), found[0] if found else None)


def _scatter(case: MarginCase, main: Column) -> pd.DataFrame:
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
    return ("minus " if turned else "") + show(column.variant, 40)


def _detection(case: MarginCase, frame: pd.DataFrame, main: Column) -> pd.DataFrame:
    """AUROC over perturbation sizes: of `main`, and of others in the form that orders the points best."""
    known = _by_label(case)
    best = {main.score: main}
    for label in frame["score"]:
        best.setdefault(known[label].score, known[label])
    curves = [_curve(case, column, column is main) for column in list(best.values())[:MAX_CURVES]]
    return pd.DataFrame(pd.concat(curves, ignore_index=True).dropna(subset=["auroc"]), columns=_DETECTION)


def _curve(case: MarginCase, column: Column, main: bool) -> pd.DataFrame:
    values = np.asarray(safer(column), dtype=np.float64)
    found = detection_curve(case.margin.value, values, confidence=case.contents.confidence)
    return found.assign(
        title=show(column.shown, 30),
        place=case.contents.place(column.score),
        main=main,
        chosen=case.epsilon.value,
    )


def _grid(case: MarginCase, frame: pd.DataFrame) -> Grid:
    known = _by_label(case)
    cells = tuple(
        (
            show(known[row["score"]].shown, 60),
            *(_measured(row, name) for name in ("tau", "auroc", "aupr", "fpr95")),
            f"{row['points']:,}",
        )
        for row in frame.to_dict("records")
    )
    colours = tuple(case.contents.colour(known[label].score) for label in frame["score"])
    return Grid(_HEAD, (False, *[True] * 5), cells, colours)


def _measured(row: Row, name: str) -> str:
    if np.isnan(row[name]):
        return MISSING
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if high - low > VACUOUS:
        return f"open\n{interval(low, high)}"
    return f"{fixed(row[name])}\n{interval(low, high)}"


def _conclusion(row: Row, name: str) -> str:
    if isinstance(row["reason"], str):
        return row["reason"]
    if row["auroc_low"] >= GOOD_AUROC:
        verdict = "it may stand in for the distance where points of this model are to be ranked or screened"
    elif row["auroc_high"] < GOOD_AUROC:
        verdict = "it misses too many fragile points of this model to stand in for the distance"
    else:
        verdict = "these points do not decide whether it can stand in for the distance"
    return (
        f"{show(name, 60)} orders the points with a tau of {fixed(row['tau'])} and detects the fragile ones "
        f"with an AUROC of {fixed(row['auroc'])}: {verdict}."
    )


def _alternative(case: MarginCase, frame: pd.DataFrame, row: Row) -> str:
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
        f" {show(known[best['score']].shown, 60)} does clearly better, with an AUROC of {fixed(best['auroc'])}, for "
        f"{passes} {'pass' if passes == '1' else 'passes'} a point instead of {known[row['score']].cost:,.0f}."
    )


def _note(case: MarginCase, main: Column, drawn: int, compared: int) -> str:
    left = compared - drawn
    return " ".join(
        part
        for part in (
            f"First, {_title(main)} against the distance, one dot per point with a finite distance, of more than "
            f"{MAX_DOTS:,} a regular selection. Then, AUROC if another epsilon were chosen, with "
            f"the {percent(case.contents.confidence)} interval of {show(main.shown, 60)}.",
            _drawn_text(drawn, left),
            f"The dashed lines are epsilon = {case.epsilon.text}.",
        )
        if part
    )


def _drawn_text(drawn: int, left: int) -> str:
    """Which of the scores are drawn, where some are not."""
    if not left:
        return ""
    best = f", and of the others the {drawn - 1:,} with the largest tau, each by its best parameters"
    others = best if drawn > 1 else ""
    return f"Drawn is that score{others}; {plural(left, 'further score')} in the table only."
