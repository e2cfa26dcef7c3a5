"""From points with known margins to a threshold, what it achieves, and whether its score may be trusted."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.detection import GOOD_AUROC, detection
from brittle.analysis.margin_consistency import margin_consistency
from brittle.detector.results import Counts, LeftOut, Rate, Verdict, left_out_sentence
from brittle.detector.threshold import check_rate, flagged, points_needed, threshold_of, too_few
from brittle.errors import DataError, ParameterError
from brittle.estimate import INPUT_MARGIN, Parameter, Status, parameters_json
from brittle.intervals import check_confidence
from brittle.norms import check_norm
from brittle.store.files.strict_json import MOST_WHOLE
from brittle.store.record import ScoreRecord
from brittle.store.table import Table


@dataclass(frozen=True)
class Goal:
    """What a detector is asked for.

    Attributes:
        epsilon: a point is brittle when its margin is at most this, in the declared pixel units.
        norm: of the margins.
        tpr: true positive rate to hold, between 0 and 1.
        confidence: of every interval.
        seed: of the split into points to calibrate on and points to check on.

    Raises:
        ParameterError: the rate or the confidence does not lie between 0 and 1, or the seed is no whole number.
    """

    epsilon: float
    norm: str
    tpr: float
    confidence: float
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "tpr", check_rate(self.tpr))
        check_confidence(self.confidence)
        object.__setattr__(self, "confidence", float(self.confidence))
        if not isinstance(self.seed, Integral) or isinstance(self.seed, bool) or not 0 <= self.seed <= MOST_WHOLE:
            raise ParameterError("seed", f"the seed must be at least 0, a whole number; found {self.seed!r:.60}")
        object.__setattr__(self, "seed", int(self.seed))


@dataclass(frozen=True)
class Calibration:
    """What `calibrate` found.

    Attributes:
        threshold: a score below it is brittle.
        true_positives: share of held-out brittle points that are flagged.
        false_positives: share of robust points that are flagged.
        counts: how many points were used for what.
        verdict: whether the score may be trusted.
    """

    threshold: float
    true_positives: Rate
    false_positives: Rate
    counts: Counts
    verdict: Verdict


@dataclass(frozen=True)
class KnownPoints:
    """The points of a run whose margin is known, in the order of their ids.

    Attributes:
        margins: `[n]`, may be infinite.
        scores: `[n]`, larger where safer; minus infinity where there is no finite number.
        left_out: how many points the run holds, and how many of them are not among these.
    """

    margins: NDArray[np.float64]
    scores: NDArray[np.float64]
    left_out: LeftOut


def calibrate(points: KnownPoints, goal: Goal) -> Calibration:
    """Choose the threshold on half of the brittle points and check it on the other half and on all robust points.

    Raises:
        DataError: there are too few brittle points or no robust one, or too many of the brittle points have no score.
    """
    _check_both_kinds(points.margins, goal.epsilon)
    brittle = points.margins <= goal.epsilon
    chosen, rest = _halves(points.scores[brittle], goal, points.left_out)
    threshold = threshold_of(chosen, goal.tpr)
    return Calibration(
        threshold=threshold,
        true_positives=Rate.of(flagged(rest, threshold), goal.confidence),
        false_positives=Rate.of(flagged(points.scores[~brittle], threshold), goal.confidence),
        counts=Counts(
            **vars(points.left_out),
            brittle=int(brittle.sum()),
            robust=int((~brittle).sum()),
            without_score=int(np.isinf(points.scores).sum()),
            calibration=chosen.size,
            held_out=rest.size,
        ),
        verdict=judge(points.margins, points.scores, goal.epsilon, goal.confidence),
    )


def known_points(
    rows: pd.DataFrame, scores: pd.DataFrame, sign: float, learned_from: Collection[str] = ()
) -> KnownPoints:
    """The points that can be used.

    Args:
        rows: the rows of the margins, by point.
        scores: the rows of the score, by point.
        sign: -1 where smaller values of the score are safer, otherwise 1.
        learned_from: ids of points that the score was trained on.

    Raises:
        DataError: a point with a margin is not among `scores`.
    """
    rows = rows.sort_index()
    margins = rows["value"].to_numpy(np.float64)
    absent = rows.index[~np.isnan(margins) & ~rows.index.isin(scores.index)]
    if len(absent):
        raise DataError(
            "other_points",
            f"{len(absent)} of {len(rows)} points with a margin are not in the run of the scores, first "
            f"{absent[0]!r:.60}; score all of them",
        )
    safety = sign * scores.reindex(rows.index)["value"].to_numpy(np.float64)
    masked = (rows["status"] == Status.MASKED.slug).to_numpy(bool)
    unknown = np.isnan(margins) & ~masked
    learned = rows.index.isin(list(learned_from)) & ~masked & ~unknown
    used = ~(masked | unknown | learned)
    left_out = LeftOut(len(rows), int(masked.sum()), int(unknown.sum()), int(learned.sum()))
    return KnownPoints(margins[used], np.where(np.isfinite(safety), safety, -np.inf)[used], left_out)


def judge(margins: NDArray[np.float64], scores: NDArray[np.float64], epsilon: float, confidence: float) -> Verdict:
    """Whether `scores` `[n]`, larger where safer, tell the points whose `margins` `[n]` are at most `epsilon`."""
    order = margin_consistency(margins, scores, confidence)
    detected = detection(margins, scores, epsilon, confidence)
    return Verdict(
        trusted=detected.reason is None and detected.auroc_low >= GOOD_AUROC,
        tau=_none_if_nan(order.tau),
        tau_low=order.low,
        tau_high=order.high,
        auroc=_none_if_nan(detected.auroc),
        auroc_low=detected.auroc_low,
        auroc_high=detected.auroc_high,
    )


def _check_both_kinds(margins: NDArray[np.float64], epsilon: float) -> None:
    """Raise where there are points, but all of their margins are on one side of `epsilon`.

    Raises:
        DataError: they are.
    """
    if not margins.size:
        return
    smallest, largest = float(margins.min()), float(margins.max())
    units = "in the units of the inputs, such as 8/255 where they range from 0 to 1"
    if largest <= epsilon:
        raise DataError(
            "no_robust_points",
            f"every margin is at most {epsilon:g}, so there is no robust point to tell apart; the largest is "
            f"{largest:.4g}: choose a smaller epsilon, {units}",
        )
    if smallest > epsilon:
        found = f"the smallest is {smallest:.4g}" if math.isfinite(smallest) else "no other prediction was found at all"
        raise DataError(
            "no_brittle_points",
            f"every margin is larger than {epsilon:g}, so there is no brittle point to calibrate on; {found}: choose a "
            f"larger epsilon, {units}",
        )


def _halves(
    scores: NDArray[np.float64], goal: Goal, left_out: LeftOut
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores to calibrate on and scores to check on, `scores` being in an order that the data do not decide."""
    needed = 2 * points_needed(goal.tpr)
    if scores.size < needed:
        found = f"{scores.size}{left_out_sentence(left_out)}"
        raise too_few(found, needed, "half of them to calibrate on and half to check", goal.tpr)
    shuffled = np.random.default_rng(goal.seed).permutation(scores)
    middle = (scores.size + 1) // 2
    return shuffled[:middle], shuffled[middle:]


def check_table(table: Any, name: str) -> None:
    """Raise where the parameter `name` is no run.

    Raises:
        ParameterError: it is none.
    """
    if not isinstance(table, Table):
        raise ParameterError(
            name,
            f"expected the brittle.Table of a run, found {type(table).__name__}; brittle.score gives one, and "
            f"brittle.read_table reads one from its folder",
        )


def check_label(label: str | None) -> None:
    """Raise unless `label` is text, or None.

    Raises:
        ParameterError: it is something else.
    """
    if not isinstance(label, str | None):
        kind = type(label).__name__
        raise ParameterError(
            "margin", f"expected the label of the margins, such as 'input_margin(norm=l2)', found {kind}"
        )


def norm_of(table: Table, norm: str | None, label: str | None = None) -> str:
    """`norm` itself; where it is None, the norm of the input margins of a run that holds them in one only.

    Args:
        table: the run.
        norm: `l2`, `linf` or None.
        label: of the margins, where the run holds several.

    Raises:
        DataError: the run holds no input margins of that label, or holds them in several norms.
        UnknownNameError: there is no such norm.
    """
    if norm is not None:
        return check_norm(norm)
    margins = [one for one in table.record.scores if one.score == INPUT_MARGIN]
    found = dict.fromkeys(str(one.parameters.get("norm")) for one in margins if label in (None, one.label))
    if not found:
        raise _missing(table, label or INPUT_MARGIN)
    if len(found) > 1:
        raise DataError(
            "several_norms",
            f"the run holds {INPUT_MARGIN} in {' and '.join(found)}; say which is meant with --norm (norm=)",
        )
    return check_norm(next(iter(found)))


def margin_entry(table: Table, norm: str, label: str | None) -> ScoreRecord:
    """The margins in `norm`; where the run holds those of another norm alone, the error says how to ask for them."""
    norms = {str(one.parameters.get("norm")) for one in table.record.scores if one.score == INPUT_MARGIN}
    if len(norms) == 1 and norm not in norms:
        other = norms.pop()
        raise DataError(
            "no_such_score",
            f"the run does not hold {INPUT_MARGIN} in {norm}, only in {other}; use --norm {other} (norm={other!r}), "
            f"with an epsilon for that norm",
        )
    return score_entry(table, INPUT_MARGIN, {"norm": norm}, label)


def score_entry(table: Table, score: str, wanted: Mapping[str, Parameter], label: str | None = None) -> ScoreRecord:
    """The one score of that name, parameters and label in the record of a run."""
    named = [entry for entry in table.record.scores if entry.score == score]
    fitting = [
        entry
        for entry in named
        if all(entry.parameters.get(key) == value for key, value in wanted.items()) and label in (None, entry.label)
    ]
    if len(fitting) == 1:
        return fitting[0]
    asked = label or f"{score} with {parameters_json(wanted)}"
    if fitting:
        labels = ", ".join(entry.label for entry in fitting)
        raise DataError(
            "several_scores", f"the run holds {asked} {len(fitting)} times: {labels}; name one by its label"
        )
    raise _missing(table, asked)


def _missing(table: Table, asked: str) -> DataError:
    there = ", ".join(entry.label for entry in table.record.scores) or "none"
    return DataError("no_such_score", f"the run does not hold {asked}; its scores: {there}; score the points by it too")


def rows_of(table: Table, entry: ScoreRecord) -> pd.DataFrame:
    """The rows of one score, by point."""
    frame = table.long()
    wanted = (frame["score"] == entry.score) & (frame["parameters"] == parameters_json(entry.parameters))
    return frame[wanted].set_index("point")


def _none_if_nan(number: float) -> float | None:
    return None if math.isnan(number) else number
