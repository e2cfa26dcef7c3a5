"""From points with known margins to a threshold, what it achieves, and whether its score may be trusted."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brittle.analysis.detection import GOOD_AUROC, detection
from brittle.analysis.margin_consistency import margin_consistency
from brittle.detector.ranges import check_interval
from brittle.errors import DataError, ParameterError
from brittle.estimate import INPUT_MARGIN, Status, parameters_json
from brittle.intervals import clopper_pearson
from brittle.norms import check_norm
from brittle.store.record import Parameter, ScoreRecord
from brittle.store.table import Table

STEADY = 13
"""So many times the brittle points that a rate needs make it steady: see `steady_rate`."""


@dataclass(frozen=True)
class Rate:
    """A share of points that were flagged, with its exact interval (Clopper-Pearson).

    Attributes:
        flagged: points flagged.
        points: points looked at.
        value: their ratio, or None where there are none.
        low: lower end of the interval.
        high: upper end.

    Raises:
        ParameterError: these are not the numbers of one rate.
    """

    flagged: int
    points: int
    value: float | None
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.flagged <= self.points or not 0.0 <= self.low <= self.high <= 1.0:
            raise ParameterError("rate", f"{self.flagged} of {self.points} in [{self.low}, {self.high}] is no rate")
        if self.value != (self.flagged / self.points if self.points else None):
            raise ParameterError("value", f"{self.flagged} of {self.points} is no rate of {self.value!r}")

    @classmethod
    def of(cls, flagged: NDArray[np.bool_], confidence: float) -> Rate:
        """The share of True in `flagged`, `[n]`."""
        hits, points = int(flagged.sum()), flagged.size
        low, high = clopper_pearson(hits, points, confidence) if points else (0.0, 1.0)
        return cls(hits, points, hits / points if points else None, float(low), float(high))

    def __str__(self) -> str:
        shown = "unknown" if self.value is None else f"{self.value:.1%}"
        return f"{shown} [{self.low:.1%}, {self.high:.1%}], {self.flagged} of {self.points} points"


@dataclass(frozen=True)
class Counts:
    """What became of the points of the run.

    Attributes:
        points: all of them.
        brittle: with a margin of at most epsilon, the positive class.
        robust: with a larger or infinite one.
        masked: left out, because vanishing gradients or disagreeing attacks make their margin doubtful.
        without_margin: left out, because they have none.
        learned_from: left out, because a pseudo-margin was trained on them.
        without_score: among `brittle` and `robust`, those without a number in the score; they are always flagged.
        calibration: brittle points that the threshold was chosen on.
        held_out: brittle points that it was checked on.

    Raises:
        ParameterError: they do not add up.
    """

    points: int
    brittle: int
    robust: int
    masked: int
    without_margin: int
    learned_from: int
    without_score: int
    calibration: int
    held_out: int

    def __post_init__(self) -> None:
        used = self.brittle + self.robust
        whole = used + self.masked + self.without_margin + self.learned_from
        halves = self.calibration == (self.brittle + 1) // 2 and self.held_out == self.brittle // 2
        if min(vars(self).values()) < 0 or self.points != whole or self.without_score > used or not halves:
            raise ParameterError("counts", f"the counts do not add up: {vars(self)}")


@dataclass(frozen=True)
class Verdict:
    """Whether a score tells brittle points of this model at all.

    Attributes:
        trusted: whether `auroc_low` is at least `GOOD_AUROC`.
        tau: Kendall's tau-b between score and margin, or None where either is constant.
        tau_low: lower end of its interval.
        tau_high: upper end.
        auroc: probability that a brittle point scores lower than a robust one, or None where a class is empty.
        auroc_low: lower end of its interval.
        auroc_high: upper end.

    Raises:
        ParameterError: an interval does not hold its number, or it is trusted though the AUROC may be too low.
    """

    trusted: bool
    tau: float | None
    tau_low: float
    tau_high: float
    auroc: float | None
    auroc_low: float
    auroc_high: float

    def __post_init__(self) -> None:
        check_interval("tau", self.tau, self.tau_low, self.tau_high, (-1.0, 1.0))
        check_interval("auroc", self.auroc, self.auroc_low, self.auroc_high, (0.0, 1.0))
        if self.trusted and (self.auroc is None or self.auroc_low < GOOD_AUROC):
            raise ParameterError(
                "trusted", f"no score is trusted whose AUROC may be below {GOOD_AUROC}; found {self.auroc_low!r}"
            )

    def __str__(self) -> str:
        seen = (
            f"AUROC {_shown(self.auroc)} [{self.auroc_low:.3f}, {self.auroc_high:.3f}], "
            f"Kendall's tau {_shown(self.tau)} [{self.tau_low:.3f}, {self.tau_high:.3f}]"
        )
        if self.trusted:
            return f"trusted: {seen}"
        return (
            f"weak: {seen}; the lower end of the AUROC is below {GOOD_AUROC}, so this score flags many robust "
            f"points for this model; learn a pseudo-margin (brittle.detector.pseudo_margin) or calibrate on more points"
        )


@dataclass(frozen=True)
class Calibration:
    """What `calibrate` found.

    Attributes:
        threshold: a score below it is brittle.
        true_positives: share of held-out brittle points that are flagged.
        false_positives: share of robust points that are flagged.
        counts: what became of the points.
        verdict: whether the score may be trusted.
        parameters: of the score in the run.
        margin: parameters of the margins in the run: the norm, and how they were looked for.
    """

    threshold: float
    true_positives: Rate
    false_positives: Rate
    counts: Counts
    verdict: Verdict
    parameters: dict[str, Any]
    margin: dict[str, Any]


def check_rate(tpr: float) -> float:
    """`tpr` itself.

    Raises:
        ParameterError: it does not lie between 0 and 1.
    """
    if not 0.0 < tpr < 1.0:
        raise ParameterError("tpr", f"the true positive rate must lie between 0 and 1; found {tpr}")
    return tpr


def points_needed(tpr: float) -> int:
    """Brittle points below which no threshold holds a true positive rate of `tpr`: `tpr / (1 - tpr)`, rounded up."""
    return math.ceil(_exact(tpr) / (1 - _exact(tpr)))


def steady_rate(tpr: float) -> float:
    """What the rate of one calibration on `STEADY * points_needed(tpr)` points reaches at least 19 times out of 20.

    As many brittle points are missed as `tpr` allows, and half as many again: its law, Beta(k, n + 1 - k), lies below
    with a probability of at most 0.05 (`threshold_of`).
    """
    return tpr - (1.0 - tpr) / 2.0


def about_threshold(rate: Rate, points: int, tpr: float) -> str:
    """Whether the held-out `rate` of a threshold, chosen with half of `points` brittle points, agrees with `tpr`."""
    steady = 2 * STEADY * points_needed(tpr)
    enough = f"{steady} make the rate steady, at least {steady_rate(tpr):.4g} in 95% of calibrations"
    if rate.high >= tpr:
        varies = f"; with {points} brittle points the rate of one varies, {enough}" if points < steady else ""
        return f"agrees with the rate of {tpr} asked for, which is an average over calibrations{varies}"
    return (
        f"misses the rate of {tpr} asked for: the interval of the held-out rate ends at "
        f"{math.floor(1e4 * rate.high) / 1e4:.4f}, because the rate is kept on average over calibrations and this one "
        f"is unlucky; calibrate on more points with margins of at most epsilon (here {points}; {enough}), or once more "
        f"with another seed, but not until one agrees"
    )


def threshold_of(scores: NDArray[np.float64], tpr: float) -> float:
    r"""The smallest threshold below which a further brittle point scores with probability `tpr` or more.

    $$\tau = s_{(k)} + \mathrm{ulp}, \qquad k = \lceil \mathrm{tpr}\,(n + 1) \rceil,$$

    with `s_(1) <= ... <= s_(n)` the scores of the calibration points: the next double above `s_(k)`, because what
    equals the threshold is not flagged. Ties need no care: `s < tau` is `s <= s_(k)`.

    Validity: for `n` points exchangeable with the further one, `P(s < tau) >= k / (n + 1) >= tpr`, over the draw of all
    `n + 1` points; with continuous scores the rate for one calibration is Beta(k, n + 1 - k).

    References:
        Algorithmic learning in a random world, Vladimir Vovk, Alexander Gammerman and Glenn Shafer, 2005, chapter 2.

    Args:
        scores: of brittle points, `[n]`; minus infinity where the point is flagged whatever the threshold.
        tpr: true positive rate, between 0 and 1.

    Raises:
        DataError: there are fewer than `points_needed(tpr)` of them, or `s_(k)` is minus infinity: so many points have
            no score that any threshold would do.
    """
    if scores.size < points_needed(tpr):
        raise _too_few(scores.size, points_needed(tpr), "to calibrate on", tpr)
    rank = math.ceil(_exact(tpr) * (scores.size + 1))
    decisive = np.sort(scores)[rank - 1]
    if np.isneginf(decisive):
        raise DataError(
            "too_many_without_score",
            f"{int(np.isneginf(scores).sum())} of {scores.size} brittle points to calibrate on have no score, so that "
            f"no threshold can be told for a true positive rate of {tpr}; mend what keeps them from having one, or "
            f"choose another score",
        )
    return float(np.nextafter(decisive, np.inf))


def flagged(scores: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """The rule: brittle unless the score is a finite number that reaches the threshold, `[n]`."""
    return ~(np.isfinite(scores) & (scores >= threshold))


def calibrate(
    table: Table,
    scores: Table,
    score: str,
    *,
    sign: float,
    wanted: dict[str, Any],
    epsilon: float,
    norm: str,
    tpr: float,
    confidence: float,
    seed: int,
    margin: str | None,
    learned_from: Collection[str],
) -> Calibration:
    """Choose the threshold on half of the brittle points and check it on the other half and on all robust points.

    Args:
        table: a run with input margins in `norm`.
        scores: the run that holds the score for the same points; may be the same.
        score: its name.
        sign: -1 where smaller values of it are safer.
        wanted: parameters that it must have.
        epsilon: a point is brittle when its margin is at most this.
        norm: of the margins.
        tpr: true positive rate to hold.
        confidence: of every interval.
        seed: of the split.
        margin: label of the margins, where the run holds several in this norm.
        learned_from: ids of points that the score was trained on.

    Raises:
        DataError: a score is missing or ambiguous, points with a margin are not in `scores`, there are too few brittle
            points or no robust one, or too many of the brittle points have no score.
    """
    margins = _margin_entry(table, norm, margin)
    entry = _entry(scores, score, wanted, None)
    known, left_out = _known_points(_rows(table, margins), _rows(scores, entry), sign, learned_from)
    _check_both_kinds(known.margins, epsilon)
    brittle = known.margins <= epsilon
    chosen, rest = _halves(known.scores[brittle], tpr, seed, left_out)
    threshold = threshold_of(chosen, tpr)
    return Calibration(
        threshold=threshold,
        true_positives=Rate.of(flagged(rest, threshold), confidence),
        false_positives=Rate.of(flagged(known.scores[~brittle], threshold), confidence),
        counts=Counts(
            **left_out,
            brittle=int(brittle.sum()),
            robust=int((~brittle).sum()),
            without_score=int(np.isinf(known.scores).sum()),
            calibration=chosen.size,
            held_out=rest.size,
        ),
        verdict=judge(known.margins, known.scores, epsilon, confidence),
        parameters=dict(entry.parameters),
        margin=dict(margins.parameters),
    )


class _Known(NamedTuple):
    """Points whose margin is known, in the order of their ids.

    Attributes:
        margins: `[n]`, may be infinite.
        scores: `[n]`, larger where safer; minus infinity where there is no finite number.
    """

    margins: NDArray[np.float64]
    scores: NDArray[np.float64]


def _known_points(
    rows: pd.DataFrame, scores: pd.DataFrame, sign: float, learned_from: Collection[str]
) -> tuple[_Known, dict[str, int]]:
    """The points of the margins `rows` that can be used, and how many there were and were left out for each reason.

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
    left_out = {"masked": masked, "without_margin": unknown, "learned_from": learned}
    counts = {"points": len(rows)} | {reason: int(where.sum()) for reason, where in left_out.items()}
    return _Known(margins[used], np.where(np.isfinite(safety), safety, -np.inf)[used]), counts


def judge(margins: NDArray[np.float64], scores: NDArray[np.float64], epsilon: float, confidence: float) -> Verdict:
    """Whether `scores` `[n]`, larger where safer, tell the points whose `margins` `[n]` are at most `epsilon`."""
    order = margin_consistency(margins, scores, confidence)
    told = detection(margins, scores, epsilon, confidence)
    return Verdict(
        trusted=told.reason is None and told.auroc_low >= GOOD_AUROC,
        tau=_known(order.tau),
        tau_low=order.low,
        tau_high=order.high,
        auroc=_known(told.auroc),
        auroc_low=told.auroc_low,
        auroc_high=told.auroc_high,
    )


def _check_both_kinds(margins: NDArray[np.float64], epsilon: float) -> None:
    """Raise where there are points, but `epsilon` does not part them.

    Raises:
        DataError: it does not.
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
        seen = f"the smallest is {smallest:.4g}" if math.isfinite(smallest) else "no other prediction was found at all"
        raise DataError(
            "no_brittle_points",
            f"every margin is larger than {epsilon:g}, so there is no brittle point to calibrate on; {seen}: choose a "
            f"larger epsilon, {units}",
        )


def _halves(
    scores: NDArray[np.float64], tpr: float, seed: int, left_out: dict[str, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores to calibrate on and scores to check on, `scores` being in an order that the data do not decide."""
    needed = 2 * points_needed(tpr)
    if scores.size < needed:
        raise _too_few(scores.size, needed, "half of them to calibrate on and half to check", tpr, left_out)
    shuffled = np.random.default_rng(seed).permutation(scores)
    middle = (scores.size + 1) // 2
    return shuffled[:middle], shuffled[middle:]


def _too_few(found: int, needed: int, use: str, tpr: float, left_out: dict[str, int] | None = None) -> DataError:
    return DataError(
        "too_few_calibration_points",
        f"a true positive rate of {tpr} needs {needed} brittle points, {use}; found {found}"
        f"{left_out_sentence(left_out or {})}; score more points, or choose a larger epsilon or a smaller rate",
    )


def left_out_sentence(counts: dict[str, int]) -> str:
    """How many points were left out and why, as the end of a sentence; empty where there are none."""
    parts = [f"{counts[name]} {words}" for name, words in _LEFT_OUT.items() if counts.get(name)]
    return f" (left out: {', '.join(parts)})" if parts else ""


_LEFT_OUT = {"masked": "masked", "without_margin": "without margin", "learned_from": "learned from"}


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


def _margin_entry(table: Table, norm: str, label: str | None) -> ScoreRecord:
    """The margins in `norm`; where the run holds those of another norm alone, the error says how to ask for them."""
    norms = {str(one.parameters.get("norm")) for one in table.record.scores if one.score == INPUT_MARGIN}
    if len(norms) == 1 and norm not in norms:
        other = norms.pop()
        raise DataError(
            "no_such_score",
            f"the run does not hold {INPUT_MARGIN} in {norm}, only in {other}; use --norm {other} (norm={other!r}), "
            f"with an epsilon for that norm",
        )
    return _entry(table, INPUT_MARGIN, {"norm": norm}, label)


def _entry(table: Table, score: str, wanted: Mapping[str, Parameter], label: str | None) -> ScoreRecord:
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


def _rows(table: Table, entry: ScoreRecord) -> pd.DataFrame:
    """The rows of one score, by point."""
    frame = table.long()
    wanted = (frame["score"] == entry.score) & (frame["parameters"] == parameters_json(entry.parameters))
    return frame[wanted].set_index("point")


def _exact(rate: float) -> Fraction:
    """A rate as it was written, so that 0.9 is nine tenths."""
    return Fraction(str(rate))


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _shown(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.3f}"
